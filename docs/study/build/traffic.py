"""Figures of what is sent, in which messages, when and between whom."""

from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from compare.render.figures import COLOURS, INK
from compare.render.picture import Picture
from compare.render.units import bytes_text, time_text
from docs.study.build.answers import Answer, Row
from docs.study.build.sheet import (
    ARMS,
    BYTES,
    COUNTED,
    DASHES,
    MARKS,
    MODELLED,
    PHASES,
    RATE,
    SHOWN,
    TIME,
    Sheet,
    axes_style,
    distinct,
    name_rows,
)

Numbers = NDArray[np.float64]

LEAST_BYTES = 1000
"""Of a link that is drawn: the few bytes that choose a token would take half of the axis."""


def moves(answer: Answer) -> Picture:
    """What each parallelism has to move for one token: a row for each plan, a mark for each parallelism."""
    answer = answer.where(model=list(SHOWN))
    plans = {model: [mesh for (mesh,) in distinct(answer.where(model=model), "mesh")] for model in SHOWN}
    heights = [0.22 * len(each) for each in plans.values()]
    sheet = Sheet("Bytes that a plan requires for one token, by parallelism", label=COUNTED, high=sum(heights) + 2.2)
    needed = [value for value in answer.numbers("inherent_bytes_per_token") if value > 0]
    top = 0.3
    for model, height in zip(SHOWN, heights, strict=True):
        for column, phase in enumerate(PHASES):
            panel = sheet.panel(0.95 + column * 3.95, top, 3.4, height)
            for row, mesh in enumerate(plans[model]):
                panel.axhline(row, color="#eceef1", zorder=0)
                for each in answer.where(model=model, phase=phase, mesh=mesh):
                    if amount := each.number("inherent_bytes_per_token"):
                        colour, marker = axes_style(str(each.axes))
                        panel.plot([amount], [row], marker, color=colour, markersize=5.5, label=f"over {each.axes}")
            _log_bytes(panel, min(needed), max(needed))
            name_rows(panel, [] if column else plans[model], rows=len(plans[model]))
            panel.set_title(f"{model}, {phase}", loc="left")
            panel.set_xlabel("bytes of one token, all devices together")
        top += height + 0.75
    sheet.add_legend(columns=6)
    return sheet.save(
        "moves", "Bytes of one token that each plan requires, by parallelism, on all 8 devices together; logarithmic"
    )


def _log_bytes(panel: Axes, low: float, high: float) -> None:
    panel.set_xscale("log")
    panel.set_xlim(low / 2, high * 2)
    panel.xaxis.set_major_locator(LogLocator(numticks=5))
    panel.xaxis.set_major_formatter(BYTES)
    panel.xaxis.set_minor_locator(NullLocator())


def messages(answer: Answer) -> Picture:
    """Payload against count, a panel for each plan and phase, a mark for each kind; frameworks side by side."""
    plans = distinct(answer, "model", "mesh")
    kinds = [kind for (kind,) in distinct(answer, "kind")]
    sheet = Sheet("How large messages are, and how many in a step", label=COUNTED, high=2.35 * len(plans) + 0.5)
    sizes, counts = answer.numbers("payload_bytes"), answer.numbers("message_count")
    for row, (model, mesh) in enumerate(plans):
        for column, phase in enumerate(PHASES):
            panel = sheet.panel(0.75 + 4.05 * column, 2.35 * row + 0.3, 3.5, 1.5)
            for arm, (title, colour, _) in ARMS.items():
                for number, kind in enumerate(kinds):
                    here = answer.where(model=model, mesh=mesh, phase=phase, arm=arm, kind=kind)
                    # A little to the left and to the right, so that equal ones do not hide each other.
                    beside = 0.85 if arm == "jax" else 1.18
                    panel.plot(
                        [beside * size for size in here.numbers("payload_bytes")],
                        here.numbers("message_count"),
                        MARKS[number],
                        color=colour,
                        markerfacecolor="none" if arm == "jax" else colour,
                        linestyle="none",
                        markersize=5,
                        label=f"{title} {kind}",
                    )
            _log_bytes(panel, min(sizes), max(sizes))
            panel.set_yscale("log")
            panel.set_ylim(min(counts) / 2, max(counts) * 2)
            panel.set_title(f"{model} on {mesh}, {phase}", loc="left")
            panel.set_ylabel("" if column else "messages a step")
            panel.set_xlabel("payload of one message")
    sheet.add_legend(columns=4)
    return sheet.save(
        "messages",
        "Payload of one message against the number of such messages in a step, by kind "
        "and framework (JAX drawn a little to the left, TorchXLA to the right); both logarithmic",
    )


def demand(answer: Answer) -> Picture:
    """What a device sends over a step, a strip for each framework on a scale of its own, and the step on a circle."""
    shown = distinct(answer, "model", "mesh", "phase")
    sheet = Sheet("The network's demand over one step, and rolled on a circle", label=MODELLED, high=2.1 * len(shown))
    for row, (model, mesh, phase) in enumerate(shown):
        whole = answer.where(model=model, mesh=mesh, phase=phase, axes="all")
        for number, (arm, (title, colour, _)) in enumerate(ARMS.items()):
            panel = sheet.panel(1.25, 2.1 * row + 0.3 + 0.88 * number, 5.2, 0.5)
            for each in whole.where(arm=arm):
                step, rates = each.number("step_ns"), _rates(each)
                panel.stairs(rates, np.linspace(0, step, len(rates) + 1), fill=True, color=colour, rasterized=True)
                circle = sheet.panel(7.1, 2.1 * row + 0.12 + 0.88 * number, 0.85, 0.85, polar=True)
                _circle(circle, np.array(each.series("up")), colour=colour)
                panel.set_xlim(0, step)
                panel.set_ylim(0, 1.05 * float(rates.max()))
                panel.set_yticks([0, _round_down(float(rates.max()))])
                words = f"{model} on {mesh}, {phase}, {title}: {time_text(step)}"
                panel.set_title(words, loc="left", fontsize=7.5, color=colour, pad=2)
            panel.xaxis.set_major_formatter(TIME)
            panel.yaxis.set_major_formatter(RATE)
            panel.locator_params(axis="x", nbins=6)
            panel.tick_params(labelsize=6.5)
    return sheet.save(
        "demand",
        "Bytes a second that a device sends over one step (left; each strip has its own "
        "scales), and the share of each part of the step that its network is up, once round from the top "
        "(right); JAX green, TorchXLA red",
    )


def _rates(row: Row) -> Numbers:
    """Bytes a second in each part of a step."""
    sent = np.array(row.series("wire_bytes"))
    return sent * len(sent) / row.number("step_ns") * 1e9


def _round_down(value: float) -> float:
    """To one digit."""
    unit = 10 ** np.floor(np.log10(max(value, 1)))
    return float(np.floor(value / unit) * unit)


def _circle(panel: Axes, up: Numbers, *, colour: str) -> None:
    """A step once round, clockwise from the top: how much of each part the network is up."""
    edges, inner = np.pi / 2 - np.linspace(0, 2 * np.pi, len(up) + 1), np.full(len(up), 0.55)
    for height, paint in ((np.ones(len(up)), "#eceef1"), (up, colour)):  # one shape each: a bar for each part takes 5 s
        panel.stairs(inner + 0.45 * height, edges, baseline=inner, fill=True, color=paint, rasterized=True)
    panel.set_ylim(0, 1)
    panel.axis("off")


def windows(answer: Answer) -> Picture:
    """The distribution of the windows between two parallelisms, by pair, with median and 95th percentile."""
    shown = [
        each for each in distinct(answer, "model", "mesh", "phase") if each[0] == SHOWN["ep" in each[1]]
    ]  # one panel a plan: the dense model's, or where there are experts the other's
    rows = ceil(len(shown) / 2)
    title = "Windows between the traffic of one parallelism and that of the next"
    sheet = Sheet(title, label=MODELLED, high=2.1 * rows + 0.4)
    largest = max(max(each.series("quantiles_ns")) for each in answer) / 1e3
    for number, (model, mesh, phase) in enumerate(shown):
        row, column = divmod(number, 2)
        panel = sheet.panel(0.6 + 4.15 * column, 2.1 * row + 0.28, 3.6, 1.3)
        here = answer.where(model=model, mesh=mesh, phase=phase)
        among = distinct(here, "from_axes", "to_axes")
        for each in here:
            quantiles = np.array(each.series("quantiles_ns")) / 1e3
            dash = DASHES[among.index((str(each.from_axes), str(each.to_axes))) % len(DASHES)]
            colour = ARMS[str(each.arm)][1]
            shares = np.linspace(0, 100, len(quantiles))
            panel.step(quantiles, shares, where="post", linestyle=dash, linewidth=1.3, color=colour)
            panel.plot([each.number("median_ns") / 1e3], [50], "o", color=colour, markersize=3)
            panel.plot([each.number("p95_ns") / 1e3], [95], "^", color=colour, markersize=3)
        panel.set_xscale("symlog", linthresh=1)
        panel.set_xlim(min(0, min(min(each.series("quantiles_ns")) for each in here) / 1e3), 2 * largest)
        panel.xaxis.set_major_locator(FixedLocator([0, *(10.0**n for n in range(7) if 10**n <= 2 * largest)]))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(1e3 * value) if value else "0"))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xlabel("window (linear below 1 µs)", labelpad=1)
        panel.set_ylabel("%", labelpad=0)
        panel.set_title(f"{model} on {mesh}, {phase}", loc="left")
        handles = [Line2D([], [], color=INK, linestyle=DASHES[at % len(DASHES)]) for at in range(len(among))]
        panel.legend(handles, [f"{a} → {b}" for a, b in among], fontsize=6, frameon=False, loc="lower right")
    frameworks = [Line2D([], [], color=colour) for _, colour, _ in ARMS.values()]
    marks = [Line2D([], [], color=INK, marker=marker, linestyle="none", markersize=4) for marker in "o^"]
    words = [*(title for title, *_ in ARMS.values()), "median", "95th percentile"]
    sheet.figure.legend([*frameworks, *marks], words, loc="lower center", ncols=4, frameon=False, fontsize=7.5)
    return sheet.save(
        "windows",
        "Cumulative distribution of the windows between parallelisms, by pair; a dot at the "
        "median, a triangle at the 95th percentile",
    )


def pairs(answer: Answer) -> Picture:
    """Device to device, a map for each plan, above JAX and below TorchXLA, of prefill; each on its own scale."""
    here = answer.where(phase="prefill")
    shown = distinct(here, "model", "mesh")
    side = 7.3 / max(len(shown), 3)
    sheet = Sheet("Who has to send to whom in one prefill step", label=COUNTED, high=2 * (side + 0.5) + 0.45)
    for column, (model, mesh) in enumerate(shown):
        for row, (arm, (title, *_)) in enumerate(ARMS.items()):
            panel = sheet.panel(0.6 + side * column, 0.55 + row * (side + 0.42), side - 0.18, side - 0.18)
            matrix = _matrix(here.where(model=model, mesh=mesh, arm=arm))
            largest = matrix.max() or 1.0
            panel.imshow(np.ma.masked_equal(matrix, 0), cmap=COLOURS, vmin=0, vmax=largest, interpolation="nearest")
            ticks = range(0, len(matrix), 2)
            panel.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=6)
            panel.set_yticks(ticks, ["" if column else str(tick) for tick in ticks], fontsize=6)
            panel.spines[:].set_visible(True)
            words = f"{title}: {bytes_text(matrix.sum() / len(matrix))}"
            panel.set_title(f"{model}\n{mesh}\n{words}" if not row else words, fontsize=6.8, pad=3)
            panel.set_ylabel("" if column else "from device", fontsize=7)
            panel.set_xlabel("to device" if row else "", fontsize=7)
    scale = sheet.panel(8.35, 0.6, 0.1, 2 * side - 0.1)
    bar = sheet.figure.colorbar(ScalarMappable(norm=Normalize(0, 1), cmap=COLOURS), cax=scale)
    bar.ax.set_yticks([0, 1], ["0", "most"])
    bar.ax.yaxis.set_ticks_position("left")
    bar.ax.tick_params(labelsize=6.5)
    return sheet.save(
        "pairs",
        "Logical bytes from each device (rows) to each (columns) in one prefill step, JAX "
        "above, TorchXLA below; darker is more, each map on its own scale, white is nothing; above each "
        "map the bytes that a device sends, mean",
    )


def _matrix(cells: Answer) -> Numbers:
    devices = 1 + int(max(cells.numbers("device_to"), default=0))
    matrix = np.zeros((devices, devices))
    for each in cells:
        matrix[int(each.number("device_from")), int(each.number("device_to"))] = each.number("logical_bytes")
    return matrix


def links(answer: Answer) -> Picture:
    """What crosses each link of the torus in a step: a row for each plan and framework, a mark for each link."""
    models = [model for (model,) in distinct(answer, "model")]
    rows = {model: distinct(answer.where(model=model), "mesh", "arm") for model in models}
    sheet = Sheet(
        "What crosses each link between neighbouring chips in one step",
        label=MODELLED,
        high=sum(0.19 * len(each) + 0.75 for each in rows.values()) + 0.4,
    )
    crossed = [value for value in answer.numbers("routed_bytes") if value > LEAST_BYTES]
    top = 0.3
    for model in models:
        height = 0.19 * len(rows[model])
        for column, phase in enumerate(PHASES):
            panel = sheet.panel(1.45 + column * 3.6, top, 3.2, height)
            for row, (mesh, arm) in enumerate(rows[model]):
                title, colour, marker = ARMS[arm]
                here = answer.where(model=model, mesh=mesh, arm=arm, phase=phase).numbers("routed_bytes")
                amounts = [value for value in here if value > LEAST_BYTES]
                panel.plot(amounts, [row] * len(amounts), marker, color=colour, markersize=4, alpha=0.6, label=title)
            _log_bytes(panel, min(crossed), max(crossed))
            names = [f"{mesh}  {ARMS[arm][0]}" for mesh, arm in rows[model]]
            name_rows(panel, [] if column else names, rows=len(names))
            panel.set_title(f"{model}, {phase}", loc="left")
            panel.set_xlabel("bytes over one link, one way")
        top += height + 0.75
    sheet.add_legend(columns=2)
    return sheet.save(
        "links",
        "Bytes that cross each link between two neighbouring chips in one direction in a step, "
        "by the routes of the model; a mark for each link, logarithmic; links that carry less than "
        "1 kB are left out",
    )
