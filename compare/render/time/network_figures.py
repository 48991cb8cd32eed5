"""The figures of the network in a step: duty cycle, bytes sent, gaps, routed traffic."""

from collections.abc import Sequence
from functools import partial

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from compare.render.figures import COLOURS, INK, WIDE, open_figure, save_figure
from compare.render.palette import UNCLEAR
from compare.render.picture import Drawing, Picture
from compare.render.time.timing_section import ProgramTiming, name_sources
from compare.render.units import axes_text, bytes_text, time_text
from compare.report.model.timing import Gaps

_ALL = "all"
_SHADES = "Blues"
_LINES = (INK, "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""From Okabe and Ito's colour-blind-safe palette."""

_DASHES = ("-", "--", ":")
"""Line style of the first program, the second, and others."""

_COLUMNS, _SIDE = 960, 300
"""Pixels: length of a strip, diameter of a circle."""


def list_drawings(phase: str, default: Sequence[ProgramTiming], *, num_devices: int) -> list[Drawing]:
    """The figures of the default programs that communicate."""
    timings = [timing for timing in default if timing.section.volume]
    if not timings:
        return []
    drawings: list[Drawing] = [partial(draw_network, phase, timings)]
    if any(timing.section.intervals for timing in timings):
        drawings.append(partial(draw_intervals, phase, timings))
    if routed := [timing for timing in timings if timing.section.matrix]:
        drawings.append(partial(draw_routes, phase, routed, num_devices=num_devices))
    return drawings


def draw_network(phase: str, timings: Sequence[ProgramTiming]) -> Picture:
    """The duty cycle of each program's axes as strips and circles, and the bytes sent over time."""
    rows = [(timing, axes) for timing in timings for axes in sorted(timing.section.volume, key=_order)]
    labels, longest = [timing.label for timing in timings], max(timing.times.step_ns or 1 for timing in timings)
    high = max(1.5, 0.23 * (len(rows) + len(timings)))
    title = f"{phase}: when the network of each axis is active, and bytes sent so far by a device"
    with open_figure(title, labels, high=[high, 0.75]) as (figure, tall, _):
        low, share = 0.45 / tall, high / tall
        strip = figure.add_axes((1.75 / WIDE, low, 2.5 / WIDE, share))
        _strips(strip, rows, longest)
        strip.set_title("duty cycle", loc="left")
        circles = figure.add_axes((4.4 / WIDE, low, 1.15 / WIDE, share))
        circles.imshow(np.concatenate([_circle(timing) for timing in timings]), interpolation="nearest")
        circles.set_axis_off()
        circles.set_title("as circles", loc="left")
        volume = figure.add_axes((6.15 / WIDE, low, 1.7 / WIDE, share))
        _volume(volume, rows, longest)
        volume.set_title("bytes sent", loc="left")
        caption = (
            f"{name_sources(timings)}, {phase}: when the network carries anything (the darker, the more of that time), "
            "along the step and on circles whose perimeter is the step (rings in the order of the strips, the first "
            "program on top); and the bytes that a device has sent so far; mean over devices and steps"
        )
        return save_figure(f"time-{phase}-network", caption, figure)


def _strips(panel: Axes, rows: Sequence[tuple[ProgramTiming, str]], longest: float) -> None:
    """A row for each program and axes, on one scale of time."""
    table = np.full((len(rows), _COLUMNS), np.nan)
    names = []
    for row, (timing, axes) in enumerate(rows):
        up = np.array(timing.section.volume[axes].up, dtype=np.float64)
        shown = round(_COLUMNS * (timing.times.step_ns or 0) / longest)
        table[row, :shown] = up[np.arange(shown) * up.size // max(shown, 1)]
        names.append(f"{timing.name}, {axes} {_percent(timing.section.network[axes].duty_cycle)}")
    panel.imshow(
        table,
        aspect="auto",
        cmap=_SHADES,
        norm=Normalize(0, 1),
        interpolation="nearest",
        extent=(0, longest, len(rows), 0),
    )
    panel.set_yticks(np.arange(len(rows)) + 0.5, names, fontsize=7.5, parse_math=False)
    for row in range(1, len(rows)):
        panel.axhline(row, color="white", linewidth=2 if rows[row][0] is rows[row - 1][0] else 6)
    panel.spines[["left", "bottom"]].set_visible(False)
    _format_time_axis(panel)


def _circle(timing: ProgramTiming) -> NDArray[np.float64]:
    """An image of the step as rings, one per axes, clockwise from the top."""
    curves = [timing.section.volume[axes].up for axes in sorted(timing.section.volume, key=_order)]
    table = np.array(curves, dtype=np.float64)
    down, right = np.mgrid[-1 : 1 : _SIDE * 1j, -1 : 1 : _SIDE * 1j]
    radius, turn = np.hypot(down, right), np.arctan2(right, -down) / (2 * np.pi) % 1
    ring = np.floor((0.94 - radius) / 0.64 * len(table)).astype(np.int64)
    inside = (ring >= 0) & (ring < len(table))
    values = table[np.clip(ring, 0, len(table) - 1), (turn * table.shape[1]).astype(np.int64)]
    image: NDArray[np.float64] = mpl.colormaps[_SHADES](values)
    image[~inside] = 1.0
    edge = np.abs((0.94 - radius) / 0.64 * len(table) % 1 - 0.5) > 0.5 - 0.03 * len(table)
    image[inside & edge] = 1.0
    return image


def _volume(panel: Axes, rows: Sequence[tuple[ProgramTiming, str]], longest: float) -> None:
    programs = list(dict.fromkeys(timing.cell + timing.arm for timing, _ in rows))
    colours = {axes: _LINES[index % len(_LINES)] for index, axes in enumerate(dict.fromkeys(axes for _, axes in rows))}
    for timing, axes in rows:
        curve = timing.section.volume[axes].wire_bytes
        known = [amount for amount in curve if amount is not None]
        if len(known) == len(curve):
            sent = np.concatenate(([0.0], np.cumsum(known)))
            dash = _DASHES[programs.index(timing.cell + timing.arm) % len(_DASHES)]
            words = axes if programs.index(timing.cell + timing.arm) == 0 else None
            panel.plot(
                np.linspace(0, timing.times.step_ns or 0, sent.size),
                sent,
                color=colours[axes],
                linestyle=dash,
                linewidth=1.2,
                label=words,
            )
    panel.set_xlim(0, longest)
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_locator(MaxNLocator(4))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
    panel.legend(loc="upper left", frameon=False, fontsize=7, handlelength=1)
    _format_time_axis(panel)


def _format_time_axis(panel: Axes) -> None:
    panel.xaxis.set_major_locator(MaxNLocator(3))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    panel.tick_params(labelsize=7.5)


def draw_intervals(phase: str, timings: Sequence[ProgramTiming]) -> Picture:
    """Distributions of the gaps between communications, for each pair of axes."""
    rows = [(index, timing, row) for index, timing in enumerate(timings) for row in timing.section.intervals]
    rows.sort(key=lambda entry: (entry[2].from_axes != entry[2].to_axes, entry[2].from_axes, entry[2].to_axes))
    pairs = list(dict.fromkeys((row.from_axes, row.to_axes) for _, _, row in rows))
    labels = [timing.label for timing in timings]
    high = max(1.9, 0.17 * len(rows) + 0.25)
    title = f"{phase}: how long the network rests from one communication to the next"
    with open_figure(title, labels, high=[high, 0.7]) as (figure, tall, _):
        panel = figure.add_axes((0.55 / WIDE, 0.4 / tall, 2.9 / WIDE, high / tall))
        for index, _, row in rows:
            curve = np.array(row.quantiles_ns, dtype=np.float64)
            colour = _LINES[pairs.index((row.from_axes, row.to_axes)) % len(_LINES)]
            share = np.linspace(0, 1, curve.size)
            panel.step(curve, share, where="post", color=colour, linestyle=_DASHES[index % len(_DASHES)], linewidth=1.3)
        _format_interval_axis(panel)
        _draw_key(figure.add_axes((3.6 / WIDE, 0.4 / tall, 4.3 / WIDE, high / tall)), rows, pairs, high)
        caption = (
            f"{name_sources(timings)}, {phase}: the share of traffic intervals up to a length, from the end of one "
            "communication to the start of the next, within one axis and from one to another; negative: they overlap"
        )
        return save_figure(f"time-{phase}-intervals", caption, figure)


def _format_interval_axis(panel: Axes) -> None:
    panel.set_xscale("symlog", linthresh=1000.0)
    low, high = panel.get_xlim()
    panel.set_xlim(min(low, -1000.0), max(high, 1000.0))
    panel.xaxis.set_major_locator(SymmetricalLogLocator(linthresh=1000.0, base=1000.0))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    panel.tick_params(labelsize=7.5)
    panel.set_ylim(0, 1.02)
    panel.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    panel.axvline(0, color=INK, linewidth=0.6, linestyle=":")
    panel.set_title("share of intervals up to a length", loc="left")


def _draw_key(
    panel: Axes, rows: Sequence[tuple[int, ProgramTiming, Gaps]], pairs: Sequence[tuple[str, str]], high: float
) -> None:
    """The key: the line of each distribution, with its numbers."""
    panel.set_axis_off()
    panel.set_xlim(0, 4.3)
    panel.set_ylim(high, 0)
    heads = ((0.42, "axes"), (1.2, "program"), (2.25, "N"), (2.8, "median"), (3.35, "P95"), (3.9, "IQR"))
    for left, words in heads:
        panel.annotate(words, (left, 0.05), fontsize=7.5, color=UNCLEAR)
    for line, (index, timing, row) in enumerate(rows):
        pair, down = (row.from_axes, row.to_axes), 0.25 + 0.17 * line
        colour = _LINES[pairs.index(pair) % len(_LINES)]
        panel.plot(
            [0.05, 0.35], [down - 0.04] * 2, color=colour, linestyle=_DASHES[index % len(_DASHES)], linewidth=1.3
        )
        numbers = map(time_text, (row.median_ns, row.p95_ns, row.iqr_ns))
        values = (" → ".join(pair), timing.name, f"{row.n:,}", *numbers)
        for (left, _), word in zip(heads, values, strict=True):
            panel.annotate(word, (left, down), fontsize=7.5, parse_math=False)


def draw_routes(phase: str, timings: Sequence[ProgramTiming], *, num_devices: int) -> Picture:
    """Routed traffic, device × device: a row of panels per program, by axes and in total."""
    tables, labels = (
        [_routed_matrices(timing, num_devices) for timing in timings],
        [f"routes of the model; {timing.label}" for timing in timings],
    )
    panels = list(dict.fromkeys(axes for table in tables for axes in table))
    gap = max(2, num_devices // 4)
    pitch, nothing = num_devices + gap, np.zeros((num_devices, num_devices))
    image = np.zeros((pitch * len(timings), pitch * len(panels)))
    for row, table in enumerate(tables):
        for column, axes in enumerate(panels):
            corner = (row * pitch + gap, column * pitch)
            block = tuple(slice(first, first + num_devices) for first in corner)
            image[block] = table.get(axes, nothing)
    wide, high = WIDE - 1.7, (WIDE - 1.7) / image.shape[1] * image.shape[0]
    title = f"{phase}: bytes from chip to neighbouring chip in a step"
    with open_figure(title, labels, high=[high, 0.5]) as (figure, tall, _):
        panel = figure.add_axes((0.6 / WIDE, 0.4 / tall, wide / WIDE, high / tall))
        norm = LogNorm(vmin=max(image.max() / 1e6, 1.0), vmax=max(image.max(), 10.0), clip=True)
        panel.imshow(np.ma.masked_equal(image, 0), cmap=COLOURS, norm=norm, interpolation="nearest", aspect="auto")
        for row, (timing, table) in enumerate(zip(timings, tables, strict=True)):
            for column, axes in enumerate(panels):
                what = axes_text(axes) if axes != _ALL else "total"
                words = f"{what} {bytes_text(table.get(axes, nothing).sum() / num_devices)}"
                words = f"{timing.name}: {words}" if not column else words
                left, top = column * pitch - 0.5, row * pitch + gap - 0.5
                panel.annotate(words, (left, top - 0.12 * gap), fontsize=8, parse_math=False)
                panel.add_patch(Rectangle((left, top), num_devices, num_devices, fill=False, color=INK, linewidth=0.7))
        _devices(panel, num_devices, pitch, gap, rows=len(timings), columns=len(panels))
        scale = figure.add_axes(((WIDE - 0.85) / WIDE, 0.4 / tall, 0.12 / WIDE, high / tall))
        bar = figure.colorbar(ScalarMappable(norm=norm, cmap=COLOURS), cax=scale)
        bar.ax.minorticks_off()
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        caption = (
            f"{name_sources(timings)}, {phase}: bytes from chip (down) to neighbouring chip (across) in one step, as "
            "rings on the torus carry the collectives, each hop counted; panels say the mean a device"
        )
        return save_figure(f"traffic-{phase}-routed", caption, figure)


def _devices(panel: Axes, num_devices: int, pitch: int, gap: int, *, rows: int, columns: int) -> None:
    """Label a few devices along both sides."""
    shown = np.arange(0, num_devices, max(1, num_devices // 4))
    for axis, first, count in ((panel.xaxis, 0, columns), (panel.yaxis, gap, rows)):
        ticks = np.concatenate([shown + first + pitch * index for index in range(count)])
        axis.set_ticks(ticks, np.tile(shown, count), fontsize=7.5)
    panel.spines[["left", "bottom"]].set_visible(False)


def _routed_matrices(timing: ProgramTiming, num_devices: int) -> dict[str, NDArray[np.float64]]:
    matrices: dict[str, NDArray[np.float64]] = {}
    for row in timing.section.matrix or ():
        matrix = matrices.setdefault(row.axes, np.zeros((num_devices, num_devices)))
        matrix[row.device_from, row.device_to] += row.routed_bytes or 0
    return (
        {**matrices, _ALL: sum(matrices.values(), np.zeros((num_devices, num_devices)))}
        if len(matrices) > 1
        else matrices
    )


def _order(axes: str) -> tuple[bool, str]:
    return axes != _ALL, axes


def _percent(share: float | None) -> str:
    """`0.5 %`, `43 %`: small values keep a decimal."""
    return "–" if share is None else f"{100 * share:.{1 if 0 < share < 0.0095 else 0}f} %"
