"""Figures of what is sent, in which messages, when and between whom."""

from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from compare.render.figures import COLOURS, INK
from compare.render.picture import Picture
from compare.render.units import time_text
from compare.study.answers import Answer, Row
from compare.study.sheet import (
    ARMS,
    BYTES,
    COUNTED,
    DASHES,
    MARKS,
    MODELLED,
    PHASES,
    RATE,
    TIME,
    Sheet,
    axes_style,
    distinct,
    sort_axes,
)

Numbers = NDArray[np.float64]


def moves(answer: Answer) -> Picture:
    """What each parallelism has to move for one token: a panel for each model and phase, a bar for each plan."""
    models = [model for (model,) in distinct(answer, "model")]
    plans = {model: [mesh for (mesh,) in distinct(answer.where(model=model), "mesh")] for model in models}
    axes = sort_axes([word for (word,) in distinct(answer, "axes")])
    title = "Bytes that a plan has to move for one token, by parallelism"
    sheet = Sheet(title, label=COUNTED, high=sum(0.24 * len(plans[model]) + 0.62 for model in models) + 0.4)
    top = 0.0
    for model in models:
        height = 0.24 * len(plans[model])
        for number, phase in enumerate(PHASES):
            panel = sheet.panel(0.95 + number * 3.95, top + 0.3, 3.4, height)
            left = np.zeros(len(plans[model]))
            for word in axes:
                here = answer.where(model=model, phase=phase, axes=word)
                widths = [sum(here.where(mesh=mesh).numbers("inherent_bytes_per_token")) for mesh in plans[model]]
                if any(widths):
                    colour, hatch = axes_style(word)
                    panel.barh(plans[model], widths, left=left, color=colour, hatch=hatch, edgecolor="white",
                               height=0.7, linewidth=0, label=word)  # fmt: skip
                left += widths
            panel.invert_yaxis()
            panel.xaxis.set_major_formatter(BYTES)
            panel.locator_params(axis="x", nbins=4)
            panel.set_title(f"{model}, {phase}", loc="left")
            if number:
                panel.set_yticklabels([])
        top += height + 0.62
    sheet.add_legend(columns=len(axes))
    return sheet.save("moves", "Bytes of one token by parallelism, on all 8 devices together, that each plan requires")


def messages(answer: Answer) -> Picture:
    """Payload against count, a panel for each plan and phase, a mark for each kind."""
    plans = distinct(answer, "model", "mesh")
    kinds = [kind for (kind,) in distinct(answer, "kind")]
    sheet = Sheet("How large messages are, and how many in a step", label=COUNTED, high=2.2 * len(plans) + 0.5)
    for row, (model, mesh) in enumerate(plans):
        for column, phase in enumerate(PHASES):
            panel = sheet.panel(0.75 + 4.05 * column, 2.2 * row + 0.3, 3.5, 1.5)
            for arm, (title, colour, _) in ARMS.items():
                for number, kind in enumerate(kinds):
                    here = answer.where(model=model, mesh=mesh, phase=phase, arm=arm, kind=kind)
                    panel.plot(here.numbers("payload_bytes"), here.numbers("message_count"), MARKS[number],
                               color=colour, markerfacecolor="none" if arm == "jax" else colour, linestyle="none",
                               markersize=6 if arm == "jax" else 4, label=f"{title} {kind}")  # fmt: skip
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.xaxis.set_major_locator(LogLocator(numticks=5))
            panel.xaxis.set_major_formatter(BYTES)
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_title(f"{model} on {mesh}, {phase}", loc="left")
            panel.set_ylabel("" if column else "messages")
    sheet.add_legend(columns=4)
    return sheet.save("messages", "Payload of one message against their number in a step, by kind and framework")


def demand(answer: Answer) -> Picture:
    """What a device sends over a step, a strip for each framework, and the same step rolled on a circle."""
    shown = distinct(answer, "model", "mesh", "phase")
    sheet = Sheet("The network's demand over one step, and rolled on a circle", label=MODELLED, high=1.75 * len(shown))
    for row, (model, mesh, phase) in enumerate(shown):
        whole = answer.where(model=model, mesh=mesh, phase=phase, axes="all")
        longest, most = max(whole.numbers("step_ns")), max(float(_rates(each).max()) for each in whole)
        for number, (arm, (title, colour, _)) in enumerate(ARMS.items()):
            panel = sheet.panel(1.05, 1.75 * row + 0.32 + 0.56 * number, 4.4, 0.46)
            for each in whole.where(arm=arm):
                step, rates = each.number("step_ns"), _rates(each)
                panel.stairs(rates, np.linspace(0, step, len(rates) + 1), fill=True, color=colour, rasterized=True)
                circle = sheet.panel(5.75 + 1.35 * number, 1.75 * row + 0.25, 1.15, 1.15, polar=True)
                _circle(circle, np.array(each.series("up")), colour=colour, title=f"{title}, {time_text(step)}")
            panel.set_xlim(0, longest)
            panel.set_ylim(0, 1.05 * most)
            panel.xaxis.set_major_formatter(TIME if number else FuncFormatter(lambda *_: ""))
            panel.yaxis.set_major_formatter(RATE)
            panel.set_yticks([0, _round_down(most)])
            panel.locator_params(axis="x", nbins=6)
            panel.annotate(title, (1, 0.8), (-3, 0), xycoords="axes fraction", textcoords="offset points", ha="right",
                           fontsize=7, color=colour)  # fmt: skip
            if not number:
                panel.set_title(f"{model} on {mesh}, {phase}", loc="left")
    return sheet.save("demand", "Bytes a second that a device sends over one step (left), and the share of each part "
                      "of the step that its network is up, once round from the top (right)")  # fmt: skip


def _rates(row: Row) -> Numbers:
    """Bytes a second in each part of a step."""
    sent = np.array(row.series("wire_bytes"))
    return sent * len(sent) / row.number("step_ns") * 1e9


def _round_down(value: float) -> float:
    """To one digit."""
    unit = 10 ** np.floor(np.log10(max(value, 1)))
    return float(np.floor(value / unit) * unit)


def _circle(panel: Axes, up: Numbers, *, colour: str, title: str) -> None:
    """A step once round, clockwise from the top: how much of each part the network is up."""
    angles = np.pi / 2 - np.linspace(0, 2 * np.pi, len(up), endpoint=False)
    turn = -2 * np.pi / len(up)
    panel.bar(angles, np.full(len(up), 0.45), width=turn, bottom=0.55, color="#eceef1", align="edge", rasterized=True)
    panel.bar(angles, up * 0.45, width=turn, bottom=0.55, color=colour, align="edge", rasterized=True)
    panel.set_ylim(0, 1)
    panel.axis("off")
    panel.set_title(title, fontsize=7, fontweight="normal", pad=-2)


def windows(answer: Answer) -> Picture:
    """The distribution of the windows between two parallelisms, by pair, with median and 95th percentile."""
    shown = distinct(answer, "model", "mesh", "phase")
    rows = ceil(len(shown) / 2)
    title = "Windows between the traffic of one parallelism and that of the next"
    sheet = Sheet(title, label=MODELLED, high=2.1 * rows)
    for number, (model, mesh, phase) in enumerate(shown):
        row, column = divmod(number, 2)
        panel = sheet.panel(0.6 + 4.15 * column, 2.1 * row + 0.28, 3.6, 1.3)
        here = answer.where(model=model, mesh=mesh, phase=phase)
        among = distinct(here, "from_axes", "to_axes")
        for each in here:
            quantiles = np.array(each.series("quantiles_ns")) / 1e3
            dash = DASHES[among.index((str(each.from_axes), str(each.to_axes))) % len(DASHES)]
            colour = ARMS[str(each.arm)][1]
            panel.plot(quantiles, np.linspace(0, 100, len(quantiles)), linestyle=dash, linewidth=1.3, color=colour)
            panel.plot([each.number("median_ns") / 1e3], [50], "o", color=colour, markersize=3)
            panel.plot([each.number("p95_ns") / 1e3], [95], "^", color=colour, markersize=3)
        panel.set_xscale("symlog", linthresh=1)
        panel.set_xlabel("window, µs", labelpad=1)
        panel.set_ylabel("%", labelpad=0)
        panel.set_title(f"{model} on {mesh}, {phase}", loc="left")
        handles = [Line2D([], [], color=INK, linestyle=DASHES[at % len(DASHES)]) for at in range(len(among))]
        panel.legend(handles, [f"{a} → {b}" for a, b in among], fontsize=6, frameon=False, loc="lower right")
    return sheet.save("windows", "Cumulative distribution of the windows between parallelisms, by pair; JAX green, "
                      "TorchXLA red; a dot at the median, a triangle at the 95th percentile")  # fmt: skip


def pairs(answer: Answer) -> Picture:
    """Device to device, a map for each plan, above JAX and below TorchXLA, of prefill."""
    here = answer.where(phase="prefill")
    shown = distinct(here, "model", "mesh")
    sent = [each for each in here.numbers("logical_bytes") if each > 0]
    norm, side = LogNorm(min(sent), max(sent)), 7.1 / max(len(shown), 3)
    sheet = Sheet("Who has to send to whom in one prefill step", label=COUNTED, high=2 * side + 0.75)
    for column, (model, mesh) in enumerate(shown):
        for row, (arm, (title, *_)) in enumerate(ARMS.items()):
            panel = sheet.panel(0.45 + side * column, 0.5 + row * (side + 0.08), side - 0.12, side - 0.12)
            cells = here.where(model=model, mesh=mesh, arm=arm)
            devices = 1 + int(max(cells.numbers("device_to"), default=0))
            matrix = np.zeros((devices, devices))
            for each in cells:
                matrix[int(each.number("device_from")), int(each.number("device_to"))] = each.number("logical_bytes")
            panel.imshow(np.ma.masked_equal(matrix, 0), cmap=COLOURS, norm=norm, interpolation="nearest")
            panel.set_xticks([])
            panel.set_yticks([])
            panel.spines[:].set_visible(True)
            if not row:
                panel.set_title(f"{model}\n{mesh}", fontsize=7.5)
            if not column:
                panel.set_ylabel(f"{title}: from", fontsize=8)
    scale = sheet.panel(7.75, 0.5, 0.12, 2 * side - 0.1)
    bar = sheet.figure.colorbar(ScalarMappable(norm=norm, cmap=COLOURS), cax=scale)
    bar.ax.yaxis.set_major_formatter(BYTES)
    bar.ax.tick_params(labelsize=7)
    return sheet.save("pairs", "Logical bytes from each of 8 devices (rows) to each (columns) in one prefill step, JAX "
                      "above, TorchXLA below; empty cells send nothing")  # fmt: skip
