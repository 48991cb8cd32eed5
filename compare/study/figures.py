"""The figures of a study, each from the rows of the query that has its name.

In the manner of the papers that ask the same: device-to-device heat maps (TopoOpt), the network's demand over a step
and rolled on a circle (CASSINI), the distribution of windows between parallelisms (Opus), sizes and counts of messages
and bytes over sequence length (arXiv 2507.14392).  All are told apart in grey, by shade, dash, hatch or marker.
"""

from collections.abc import Callable, Mapping
from math import ceil

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from compare.render.figures import COLOURS, COMPUTE, INK, STYLE
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
    PLANS,
    RATE,
    TIME,
    Sheet,
    axes_style,
    distinct,
    sort_axes,
)

PHASES = ("prefill", "decode")

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


def hidden(answer: Answer) -> Picture:
    """Compute, hidden and exposed communication and idle time of each step, as shares of it."""
    parts = (("compute alone", COMPUTE, ""), ("communication, hidden", "#7fb2d9", "///"),
             ("communication, exposed", "#1f4e79", ""), ("idle", "#eceef1", ""))  # fmt: skip
    models = [model for (model,) in distinct(answer, "model")]
    bars = {model: distinct(answer.where(model=model), "mesh", "arm") for model in models}
    high = sum(0.17 * len(bars[model]) + 0.58 for model in models) + 0.3
    sheet, top = Sheet("Where a step's time goes", label=MODELLED, high=high), 0.0
    for model in models:
        height = 0.17 * len(bars[model])
        names = [f"{mesh}  {ARMS[arm][0]}" for mesh, arm in bars[model]]
        for number, phase in enumerate(PHASES):
            panel = sheet.panel(1.55 + number * 3.6, top + 0.28, 3.2, height)
            rows = [answer.where(model=model, phase=phase, mesh=mesh, arm=arm).rows for mesh, arm in bars[model]]
            shares = np.array([_shares(found[0]) if found else (0.0, 0.0, 0.0, 0.0) for found in rows])
            left = np.zeros(len(names))
            for (label, colour, hatch), widths in zip(parts, shares.T, strict=True):
                panel.barh(range(len(names)), widths, left=left, color=colour, hatch=hatch, edgecolor="white",
                           linewidth=0, height=0.78, label=label)  # fmt: skip
                left += widths
            panel.set_yticks(range(len(names)), [""] * len(names) if number else names, fontsize=6.5)
            panel.invert_yaxis()
            panel.set_xlim(0, 1)
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
            panel.set_title(f"{model}, {phase}", loc="left")
        top += height + 0.58
    sheet.add_legend(columns=4)
    return sheet.save("hidden", "Shares of one modelled step: compute alone, communication behind compute, exposed "
                      "communication, idle")  # fmt: skip


def _shares(row: Row) -> tuple[float, float, float, float]:
    columns = ("step_ns", "compute_ns", "hidden_ns", "exposed_ns")
    step, compute, behind, exposed = (row.number(name) for name in columns)
    return (compute - behind) / step, behind / step, exposed / step, max(0.0, (step - compute - exposed) / step)


def sequences(answer: Answer) -> Picture:
    """Bytes and time over the length of a prompt."""
    label = "tokens of the prompt (prefill) or in the cache (decode)"
    return _growth(answer, "sequences", "seq", label, "One prompt: bytes of a step and its time, by length")


def batches(answer: Answer) -> Picture:
    """Bytes and time over the batch."""
    return _growth(answer, "batches", "batch", "sequences in the batch", "Bytes of a step and its time, by batch")


def _growth(answer: Answer, name: str, over: str, label: str, title: str) -> Picture:
    meshes = [mesh for (mesh,) in distinct(answer, "mesh")]
    columns = (("wire_bytes", "bytes a device", BYTES), ("step_ns", "step", TIME))
    panels = [(model, phase) for (model,) in distinct(answer, "model") for phase in PHASES]
    sheet = Sheet(title, label=MODELLED, high=2.05 * len(panels) + 0.7)
    for row, (model, phase) in enumerate(panels):
        for at, (column, words, formatter) in enumerate(columns):
            panel = sheet.panel(0.85 + 4.1 * at, 2.05 * row + 0.3, 3.3, 1.4)
            for number, mesh in enumerate(meshes):
                for arm, (arm_title, _, marker) in ARMS.items():
                    here = answer.where(model=model, phase=phase, mesh=mesh, arm=arm)
                    points = [(each.number(over), each.number(column))
                              for each in here if getattr(each, column) is not None]  # fmt: skip
                    if points:
                        colour = PLANS[number % len(PLANS)]
                        panel.plot(*zip(*points, strict=True), marker=marker, markersize=4, color=colour, linewidth=1.1,
                                   linestyle="-" if arm == "jax" else "--", label=f"{arm_title} {mesh}",
                                   markerfacecolor="white" if arm == "jax" else colour)  # fmt: skip
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=5))
            panel.yaxis.set_minor_locator(NullLocator())
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            panel.yaxis.set_major_formatter(formatter)
            panel.set_title(f"{model}, {phase}: {words}", loc="left")
            if row == len(panels) - 1:
                panel.set_xlabel(label)
    sheet.add_legend(columns=min(len(meshes) * 2, 4))
    return sheet.save(name, f"{title}; left the wire bytes of one device, right the modelled step; what does not "
                      "fit the memory is left out")  # fmt: skip


def frameworks(answer: Answer) -> Picture:
    """What TorchXLA moves over what the plan requires, by model and plan; its einsum control beside it."""
    here = answer.where(arm="torchxla", cell=["tpu", "tpu+einsum"])
    looks = {"tpu": (ARMS["torchxla"][1], "s", "its own attention call"), "tpu+einsum": ("#147a70", "o", "as einsum")}
    models = distinct(here, "topology", "model")
    plans = {
        each: [mesh for (mesh,) in distinct(here.where(topology=each[0], model=each[1]), "mesh")] for each in models
    }
    high = sum(0.2 * len(each) + 0.55 for each in plans.values()) + 0.4
    sheet, top = Sheet("TorchXLA: emitted ÷ inherent bytes, by plan", label=COUNTED, high=high), 0.0
    furthest = 1.1 * max([2.0, *here.where(phase="prefill").numbers("emitted_over_inherent")])
    for (topology, model), meshes in plans.items():
        for number, phase in enumerate(PHASES):
            panel = sheet.panel(1.0 + number * 3.85, top + 0.28, 3.4, 0.2 * len(meshes))
            panel.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 2)))
            for row, mesh in enumerate(meshes):
                for each in here.where(topology=topology, model=model, mesh=mesh, phase=phase):
                    if each.emitted_over_inherent is not None:
                        colour, marker, label = looks[str(each.cell)]
                        panel.plot([each.number("emitted_over_inherent")], [row], marker, color=colour, markersize=4.5,
                                   markerfacecolor=colour if each.cell == "tpu" else "white", label=label)  # fmt: skip
            panel.set_yticks(range(len(meshes)), [""] * len(meshes) if number else meshes, fontsize=7)
            panel.set_ylim(len(meshes) - 0.5, -0.5)
            panel.set_xscale("log" if phase == "decode" else "linear")
            panel.set_xlim(*((0.6, 2000.0) if phase == "decode" else (0.9, furthest)))
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_title(f"{model} on {topology}, {phase}", loc="left")
        top += 0.2 * len(meshes) + 0.55
    sheet.add_legend(columns=2)
    return sheet.save("frameworks", "Bytes that TorchXLA emits over those that the plan requires, with its own "
                      "attention call and with the same attention written as einsum")  # fmt: skip


def plans(answer: Answer) -> Picture:
    """The step of each framework's fastest plan, named, by model and phase."""
    shown = distinct(answer, "topology", "model")
    sheet = Sheet("The fastest plan of each framework", label=MODELLED, high=0.34 * len(shown) + 1.0)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.85 + number * 3.45, 0.3, 2.9, 0.34 * len(shown))
        for row, (topology, model) in enumerate(shown):
            for each in answer.where(topology=topology, model=model, phase=phase):
                for at, (arm, (title, colour, marker)) in enumerate(ARMS.items()):
                    step, mesh = each.number(f"{arm}_step_ns"), str(getattr(each, f"{arm}_mesh"))
                    place = row + (at - 0.5) * 0.38
                    panel.plot([step], [place], marker, color=colour, markersize=5, label=title)
                    panel.annotate(mesh, (step, place), (6, 0), textcoords="offset points", va="center", fontsize=6.5)
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        panel.set_xlim(low, high * 2.2)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        panel.xaxis.set_major_formatter(TIME)
        panel.xaxis.set_minor_locator(NullLocator())
        names = [f"{model} {topology}" for topology, model in shown]
        panel.set_yticks(range(len(shown)), [""] * len(shown) if number else names, fontsize=7)
        panel.set_ylim(len(shown) - 0.4, -0.6)
        panel.grid(axis="y", color="#eceef1")
        panel.set_title(phase, loc="left")
    sheet.add_legend(columns=2)
    return sheet.save("plans", "Modelled step of the fastest plan of each framework, by model and slice")


def slices(answer: Answer) -> Picture:
    """The same plan on one slice and on two."""
    shown, topologies = distinct(answer, "model", "mesh"), [each for (each,) in distinct(answer, "topology")]
    sheet = Sheet("16 chips as one slice and as two", label=MODELLED, high=0.62 * len(shown) + 1.0)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.75 + number * 3.5, 0.3, 3.0, 0.62 * len(shown))
        for row, (model, mesh) in enumerate(shown):
            for at, (arm, topology) in enumerate((arm, topology) for arm in ARMS for topology in topologies):
                found = answer.where(model=model, mesh=mesh, phase=phase, arm=arm, topology=topology).numbers("step_ns")
                title, colour, _ = ARMS[arm]
                several = topology.partition("x")[0].isdigit()
                panel.barh(row + (at - 1.5) * 0.2, found[0] if found else 0, height=0.19,
                           color="white" if several else colour, edgecolor=colour, hatch="////" if several else "",
                           label=f"{title}, {topology}")  # fmt: skip
        panel.xaxis.set_major_formatter(TIME)
        panel.locator_params(axis="x", nbins=4)
        names = [f"{model} {mesh}" for model, mesh in shown]
        panel.set_yticks(range(len(shown)), [""] * len(shown) if number else names, fontsize=7)
        panel.invert_yaxis()
        panel.set_title(f"{phase}: step", loc="left")
    sheet.add_legend(columns=4)
    return sheet.save("slices", "Modelled step of the same plan on 16 chips of one slice and on two slices of 8")


_DRAW: Mapping[str, Callable[[Answer], Picture]] = {
    draw.__name__: draw
    for draw in (moves, messages, demand, windows, pairs, hidden, sequences, batches, frameworks, plans, slices)
}

FIGURES = tuple(_DRAW)
"""Names: each figure has that of its query."""


def draw_figure(name: str, answer: Answer) -> Picture:
    """The figure of a query, from its rows."""
    with mpl.rc_context({**STYLE, "axes.titlesize": 8.5, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5}):
        return _DRAW[name](answer)
