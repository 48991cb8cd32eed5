"""The figures of the network in a step: when it is up, what it carries, how long it rests, who sends to whom."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from compare.views.figures import COLOURS, INK, STYLE, Picture, heading, heading_inches, heat_map, picture
from compare.views.timings import Timing
from compare.views.units import axes_text, bytes_text, time_text

WIDE = 8.0
"""Inches."""

_ALL = "all"
_SHADES = "Blues"
_LINES = (INK, "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Of Okabe and Ito's palette: told apart by nearly everybody."""

_DASHES = ("-", "--")

_MOST_PAIRS = 6
"""Pairs of axes that have a panel of their own."""


def pictures(phase: str, default: Sequence[Timing], *, num_devices: int) -> list[Picture]:
    """Of the default programs that communicate at all."""
    found = [one for one in default if one.section["volume"]]
    if not found:
        return []
    made = [network(phase, found)]
    made += [intervals(phase, found)] if any(one.section["intervals"] for one in found) else []
    routed = [one for one in found if one.section["matrix"]]
    return made + ([routes(phase, routed, num_devices=num_devices)] if routed else [])


def network(phase: str, found: Sequence[Timing]) -> Picture:
    """For each program its duty cycle as a strip and as a circle, and the volume over time."""
    heights = [max(1.3, 0.22 * len(one.section["volume"])) for one in found]
    told = [one.label for one in found]
    head = heading_inches(told)
    tall = head + sum(heights) + 0.7 * len(found)
    with mpl.rc_context(STYLE):
        figure, top = Figure(figsize=(WIDE, tall)), tall - head
        heading(figure, f"{phase}: when the network of each axis is up, and what a device has sent so far", told)
        for one, height in zip(found, heights, strict=True):
            top -= height + 0.7
            curves = {axes: one.section["volume"][axes] for axes in sorted(one.section["volume"], key=_order)}
            low, high = (top + 0.42) / tall, height / tall
            strip = figure.add_axes((0.95 / WIDE, low, 2.55 / WIDE, high))
            _strip(strip, one, curves)
            strip.set_title(_name(one), loc="left", parse_math=False)
            _circle(figure.add_axes((3.65 / WIDE, low, 1.5 / WIDE, high), projection="polar"), curves)
            _volume(figure.add_axes((5.75 / WIDE, low, 2.05 / WIDE, high)), one, curves)
        caption = (
            f"{_sources(found)}, {phase}: when the network carries anything (the darker, the more of that time), along "
            "the step and on a circle whose perimeter is the step; and the bytes that a device has sent so far; mean "
            "over devices and steps"
        )
        return picture(f"time-{phase}-network", caption, figure)


def _strip(panel: Any, one: Timing, curves: Mapping[str, Any]) -> None:
    step = one.time("step_ns") or 1
    table = np.array([curve["up"] for curve in curves.values()], dtype=np.float64)
    panel.imshow(table, aspect="auto", cmap=_SHADES, norm=Normalize(0, 1), interpolation="nearest",
                 extent=(0, step, len(curves), 0))  # fmt: skip
    names = [f"{axes} {_percent(one.section['network'][axes]['duty_cycle'])}" for axes in curves]
    panel.set_yticks(np.arange(len(curves)) + 0.5, names, fontsize=8, parse_math=False)
    _timed(panel)


def _circle(panel: Any, curves: Mapping[str, Any]) -> None:
    """Rings, the outermost first, clockwise from the top."""
    bins = next(iter(curves.values()))["bins"]
    edges = np.linspace(0, 2 * np.pi, bins + 1)
    radii = np.linspace(0.35, 1.0, len(curves) + 1)
    table = np.array([curve["up"] for curve in reversed(list(curves.values()))], dtype=np.float64)
    panel.pcolormesh(edges, radii, table, cmap=_SHADES, norm=Normalize(0, 1), shading="flat", rasterized=True)
    panel.set_theta_zero_location("N")
    panel.set_theta_direction(-1)
    panel.set_ylim(0, 1)
    panel.set_axis_off()


def _volume(panel: Any, one: Timing, curves: Mapping[str, Any]) -> None:
    step = one.time("step_ns") or 1
    for number, (axes, curve) in enumerate(curves.items()):
        if None in curve["wire_bytes"]:
            continue
        sent = np.concatenate(([0.0], np.cumsum(curve["wire_bytes"])))
        style = {"color": _LINES[number % len(_LINES)], "linewidth": 1.6 if axes == _ALL else 1.0}
        panel.plot(np.linspace(0, step, sent.size), sent, label=axes, **style)
    panel.yaxis.set_major_locator(MaxNLocator(4))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
    panel.set_ylim(bottom=0)
    panel.legend(loc="upper left", frameon=False, fontsize=7, handlelength=1)
    _timed(panel)


def _timed(panel: Any) -> None:
    panel.xaxis.set_major_locator(MaxNLocator(3))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    panel.tick_params(labelsize=8)


def intervals(phase: str, found: Sequence[Timing]) -> Picture:
    """How long the network rests from one communication to the next, for each pair of axes, as distributions."""
    sizes: dict[tuple[str, str], int] = {}
    for one in found:
        for row in one.section["intervals"]:
            pair = (row["from_axes"], row["to_axes"])
            sizes[pair] = max(sizes.get(pair, 0), row["n"])
    pairs = sorted(sizes, key=lambda pair: (pair[0] != pair[1], -sizes[pair]))[:_MOST_PAIRS]
    across, down, told = min(3, len(pairs)), -(-len(pairs) // 3), [one.label for one in found]
    head, high = heading_inches(told), 1.75 + 0.14 * len(found)
    tall = head + high * down + 0.3
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDE, tall))
        heading(figure, f"{phase}: how long the network rests from one communication to the next", told)
        for number, pair in enumerate(pairs):
            column, row = number % 3, number // 3
            width = (WIDE - 0.5) / across
            low = tall - head - 1.4 - high * row
            place = ((0.5 + width * column) / WIDE, low / tall, (width - 0.35) / WIDE, 1.1 / tall)
            _curves(figure.add_axes(place), pair, found, first=not column)
        handles = [
            Line2D([], [], color=_LINES[at], linestyle=_DASHES[at % 2], label=_name(one))
            for at, one in enumerate(found)
        ]
        figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
        caption = (
            f"{_sources(found)}, {phase}: the share of traffic intervals up to a length, from the end of one "
            "communication to the start of the next, within one axis and from one to another; negative: they overlap"
        )
        return picture(f"time-{phase}-intervals", caption, figure)


def _curves(panel: Any, pair: tuple[str, str], found: Sequence[Timing], *, first: bool) -> None:
    told = []
    for at, one in enumerate(found):
        row = next((row for row in one.section["intervals"] if (row["from_axes"], row["to_axes"]) == pair), None)
        if row:
            curve = np.array(row["quantiles_ns"], dtype=np.float64)
            panel.step(
                curve,
                np.linspace(0, 1, curve.size),
                where="post",
                color=_LINES[at],
                linewidth=1.4,
                linestyle=_DASHES[at % 2],
            )
            told.append(f"N {row['n']:,}, median {time_text(row['median_ns'])}, P95 {time_text(row['p95_ns'])}, "
                        f"IQR {time_text(row['iqr_ns'])}")  # fmt: skip
    panel.set_xscale("symlog", linthresh=1000.0)
    low, high = panel.get_xlim()
    panel.set_xlim(min(low, -1000.0), max(high, 1000.0))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    panel.xaxis.set_major_locator(SymmetricalLogLocator(linthresh=1000.0, base=1000.0))
    panel.set_ylim(0, 1.02)
    panel.set_yticks([0, 0.5, 1], ["0", "½", "1"] if first else ["", "", ""])
    panel.axvline(0, color=INK, linewidth=0.6, linestyle=":")
    panel.set_title(f"{pair[0]} → {pair[1]}", loc="left", parse_math=False)
    for at, words in enumerate(told):
        panel.annotate(words, (-0.04, -0.32 - 0.13 * at), xycoords="axes fraction", fontsize=6.4, color=_LINES[at])


def routes(phase: str, found: Sequence[Timing], *, num_devices: int) -> Picture:
    """Device × device, a row of panels for each program: bytes as the torus carries them, by axes and in all."""
    tables, told = [_routed(one, num_devices) for one in found], [f"routes of the model; {one.label}" for one in found]
    across, head = max(len(table) for table in tables), heading_inches(told)
    side, gap = min(2.2, (WIDE - 1.4) / across), 0.5
    wide, tall = max(WIDE, side * across + 1.4), head + (side + gap) * len(found) + 0.1
    top = max(float(matrix.max()) for table in tables for matrix in table.values())
    norm = LogNorm(vmin=max(top / 1e6, 1.0), vmax=max(top, 10.0), clip=True)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(wide, tall))
        heading(figure, f"{phase}: bytes from chip to neighbouring chip in a step", told)
        for row, (one, table) in enumerate(zip(found, tables, strict=True)):
            low = tall - head - (side + gap) * (row + 1) + 0.4
            figure.text(0.6 / wide, (low + side - 0.08) / tall, _name(one), weight="bold", parse_math=False)
            for column, (axes, matrix) in enumerate(table.items()):
                place = ((0.6 + side * column) / wide, low / tall, (side - 0.4) / wide, (side - 0.4) / tall)
                cell = figure.add_axes(place)
                heat_map(cell, matrix, norm=norm)
                cell.tick_params(labelleft=not column)
                what = axes_text(axes) if axes != _ALL else "total"
                words = f"{what} {bytes_text(matrix.sum() / num_devices)}"
                cell.set_title(words, loc="left", fontsize=8, parse_math=False)
        scale = figure.add_axes(((wide - 0.85) / wide, 0.55 / tall, 0.12 / wide, (tall - head - 0.75) / tall))
        bar = figure.colorbar(ScalarMappable(norm=norm, cmap=COLOURS), cax=scale)
        bar.ax.minorticks_off()
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        caption = (
            f"{_sources(found)}, {phase}: bytes from chip to neighbouring chip in one step, as rings on the torus "
            "carry the collectives, each hop counted (panels say the mean a device)"
        )
        return picture(f"traffic-{phase}-routed", caption, figure)


def _routed(one: Timing, num_devices: int) -> dict[str, NDArray[np.float64]]:
    found: dict[str, NDArray[np.float64]] = {}
    for row in one.section["matrix"]:
        matrix = found.setdefault(row["axes"], np.zeros((num_devices, num_devices)))
        matrix[row["device_from"], row["device_to"]] += row["routed_bytes"] or 0
    return {**found, _ALL: sum(found.values(), np.zeros((num_devices, num_devices)))} if len(found) > 1 else found


def _order(axes: str) -> tuple[bool, str]:
    return axes != _ALL, axes


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _name(one: Timing) -> str:
    return f"{one.title}  {one.cell}"


def _sources(found: Sequence[Timing]) -> str:
    return " and ".join(dict.fromkeys(one.source for one in found)).capitalize()
