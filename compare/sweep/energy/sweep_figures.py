"""Figures of a sweep's energy, after CharLLM-PPT's (arXiv:2509.10371): layouts, microbatches, options, kernels, chips.

Everything is modelled: watts and joules carry their ranges.  Legible in grey: marks and hatches tell what colours tell.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from compare.render.figures import COLOURS, INK, draw_legend, open_figure, save_figure
from compare.render.palette import COMPUTE, IDLE, UNCLEAR, arm_style
from compare.render.picture import Drawing, Picture
from compare.sweep.energy.energy_lines import SAME, UNFIT, EnergyLine
from compare.sweep.summary import CLASSES, ChipRow, EnergySummary
from compare.timeline.arrays import Floats

MODELLED = "Modelled, not measured (docs/energy.md)"
RANGES = f"{MODELLED}; lines are the ranges of the coefficients; watts are of one chip; no peak below 2 ms"

_WIDE, _ROW, _OVER, _UNDER = 9.4, 0.34, 0.4, 0.5
"""Inches: of a figure, of a row, above and below a panel."""
_SPAN = 0.8
"""A map's scale begins at this part of its end, or below: what hardly differs looks alike."""
_MOST_WRITTEN, _DARK, _SMALL = 200, 0.45, 10
"""Cells up to which they have their numbers; the part of the scale above which a cell is dark; decimals below this."""
_MOST_CHIPS = 256
"""Chips of one heat map; the chips of larger meshes are pooled by neighbours."""

_PATTERNS: dict[str, tuple[str, str]] = dict(
    zip(
        CLASSES,
        (
            ("#4d5866", ""),
            (COMPUTE, "//"),
            ("#c3cad3", ".."),
            ("#dfe3e8", "xx"),
            ("#b8442c", ""),
            ("#dba514", "\\\\"),
            ("#e7c873", "||"),
            ("#6a56a5", "--"),
            ("#3d7ab8", "++"),
            ("#9bbbd9", "oo"),
            (IDLE, ""),
        ),
        strict=True,
    )
)
"""Class of kernel -> colour and hatch."""

PER_TOKEN = "J per token"

_Number = Callable[[EnergyLine, EnergySummary], tuple[float, float, float] | None]


def list_energy(lines: Sequence[EnergyLine]) -> dict[str, Drawing]:
    """All figures for which the sweep has lines, of each model and phase, by name."""
    drawings: dict[str, Drawing] = {}
    for model, phase in dict.fromkeys((line.model, line.phase) for line in lines if line.energy):
        chosen = [line for line in lines if line.model == model and line.phase in (phase, "")]
        default = [line for line in chosen if not line.option]
        shown = {"layouts": partial(draw_layouts, default)}
        if curves := _curves(default):
            shown["microbatches"] = partial(draw_microbatches, curves)
        if any(line.option and line.energy for line in chosen):
            shown["options"] = partial(draw_options, chosen)
        shown["kernels"] = partial(draw_kernels, chosen)
        if any(line.energy and line.energy["chips"] for line in default):
            shown["chips"] = partial(draw_chips, default)
        for what, draw in shown.items():
            name = f"energy-{what}-{model}-{phase}"
            drawings[name] = partial(draw, name=name, title=f"{model}, {phase}")
    return drawings


def draw_layouts(lines: Sequence[EnergyLine], *, name: str, title: str) -> Picture:
    """Throughput, joules per token, tokens per joule, watts and exposed time of each layout (figure 4)."""
    columns: tuple[tuple[str, _Number], ...] = (
        ("tokens/s", lambda _, energy: _exact(energy["tokens_per_s"])),
        (PER_TOKEN, lambda _, energy: _range(energy, "per_token_j")),
        ("tokens per J ÷ best", lambda line, _: _exact(line.efficiency)),
        ("W: mean, peak ▷", lambda _, energy: _range(energy, "mean_w")),
        ("exposed ÷ step", lambda line, _: _exact((line.exposed_ns or 0) / (line.step_ns or 1))),
    )
    arms = list(dict.fromkeys(line.title for line in lines if line.energy))
    layouts = list(dict.fromkeys(line.layout for line in lines))
    with _open_rows([heading for heading, _ in columns], f"Energy by layout: {title}", layouts, source=RANGES) as (
        figure,
        panels,
    ):
        for number, (panel, (heading, value)) in enumerate(zip(panels, columns, strict=True)):
            for line in lines:
                row = layouts.index(line.layout)
                if line.energy is None:
                    if number == 0:
                        words = UNFIT if line.missing == UNFIT else "not possible"
                        panel.text(0, row, f" {words}", va="center", fontsize=7.5, color=UNCLEAR)
                    continue
                at = row + (arms.index(line.title) - (len(arms) - 1) / 2) * 0.3
                _point(panel, value(line, line.energy), at, arm=arms.index(line.title), label=line.title)
                if heading.startswith("W:") and line.peak_w is not None:
                    panel.plot(
                        [line.peak_w], [at], ">", color=INK, markersize=4, markerfacecolor="white", clip_on=False
                    )
            panel.set_xlim(left=0)
            panel.xaxis.set_major_locator(MaxNLocator(3))
            if heading in ("tokens/s", PER_TOKEN):
                panel.xaxis.set_major_formatter(EngFormatter(sep=""))
        draw_legend(figure, ncols=6, fontsize=8)
        return save_figure(name, f"Throughput, energy, power and exposed time by layout, modelled: {title}", figure)


def draw_microbatches(curves: Sequence[Sequence[EnergyLine]], *, name: str, title: str) -> Picture:
    """The same by the number of microbatches, a line for each mesh and framework (figure 13)."""
    columns: tuple[tuple[str, Callable[[EnergySummary, EnergyLine], float]], ...] = (
        ("tokens/s", lambda energy, _: energy["tokens_per_s"]),
        (PER_TOKEN, lambda energy, _: energy["per_token_j"]),
        ("peak W of a chip", lambda _, line: math.nan if line.peak_w is None else line.peak_w),
        ("exposed ÷ step", lambda _, line: (line.exposed_ns or 0) / (line.step_ns or 1)),
    )
    arms = list(dict.fromkeys(line.title for curve in curves for line in curve))
    meshes = list(dict.fromkeys(line.mesh for curve in curves for line in curve))
    source, words = f"{MODELLED}; bars are the ranges of the coefficients", f"Energy by microbatches: {title}"
    with open_figure(words, [source], high=[3.1], wide=_WIDE) as (figure, tall, high):
        for number, (heading, value) in enumerate(columns):
            wide = (_WIDE - 0.6) / len(columns)
            place = ((0.55 + number * wide) / _WIDE, 0.85 / tall, (wide - 0.62) / _WIDE, (high - 1.3) / tall)
            panel = figure.add_axes(place)
            for curve in curves:
                colour, marker, _ = arm_style(arms.index(curve[0].title))
                style = ("-", "--", ":", "-.")[meshes.index(curve[0].mesh) % 4]
                # Side by side where there are bars.
                shift = 2 ** (0.15 * (arms.index(curve[0].title) - (len(arms) - 1) / 2)) if heading == PER_TOKEN else 1
                numbers = [line.microbatches * shift for line in curve]
                values = [value(line.energy, line) for line in curve if line.energy]
                panel.plot(
                    numbers,
                    values,
                    style,
                    color=colour,
                    marker=marker,
                    markersize=4,
                    label=f"{curve[0].title}, {curve[0].mesh}",
                )
                if heading == PER_TOKEN:
                    ranges = [_range(line.energy, "per_token_j") for line in curve if line.energy]
                    panel.vlines(
                        numbers, [low for low, _, _ in ranges], [high for *_, high in ranges], color=colour, linewidth=1
                    )
            panel.set_xscale("log", base=2)
            panel.set_xticks(sorted({line.microbatches for curve in curves for line in curve}))
            panel.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
            panel.set_ylim(0, 1.08 * panel.get_ylim()[1])
            if heading in ("tokens/s", PER_TOKEN):
                panel.yaxis.set_major_formatter(EngFormatter(sep=""))
            panel.set_xlabel("microbatches")
            panel.set_title(heading, loc="left", fontsize=8.5)
        draw_legend(figure, ncols=6, fontsize=8)
        return save_figure(name, f"Energy by the number of microbatches, modelled: {title}", figure)


def draw_options(lines: Sequence[EnergyLine], *, name: str, title: str) -> Picture:
    """Step time and energy with other compiler options ÷ those with the default ones (figure 8)."""
    base = {(line.layout, line.arm): line for line in lines if line.energy and not line.option}
    shown = [line for line in lines if line.option and line.energy and (line.layout, line.arm) in base]
    options = list(dict.fromkeys(line.option for line in shown))
    rows = list(dict.fromkeys(f"{line.layout}: {line.option}" for line in shown))
    arms = list(dict.fromkeys(line.title for line in shown))
    columns = (("step time ÷ default", "step_ns"), ("J per token ÷ default", "per_token_j"))
    with _open_rows([heading for heading, _ in columns], f"Compiler options: {title}", rows) as (figure, panels):
        for panel, (_, field) in zip(panels, columns, strict=True):
            panel.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 2)))
            for line in shown:
                other = base[line.layout, line.arm]
                assert line.energy
                assert other.energy
                ratio = (
                    (line.step_ns or 0) / (other.step_ns or 1)
                    if field == "step_ns"
                    else line.energy["per_token_j"] / other.energy["per_token_j"]
                )
                row = rows.index(f"{line.layout}: {line.option}")
                at = row + (arms.index(line.title) - (len(arms) - 1) / 2) * 0.3
                colour, marker, _ = arm_style(arms.index(line.title))
                panel.plot([1, ratio], [at, at], color=colour, linewidth=1.6)
                inside = "white" if line.is_same else colour
                panel.plot([ratio], [at], marker, color=colour, markersize=5, markerfacecolor=inside)
                panel.plot([], [], marker, color=colour, markersize=5, label=line.title)
                words = SAME if line.is_same else f"{ratio:.3f}"
                panel.annotate(words, (ratio, at), (6, 0), textcoords="offset points", va="center", fontsize=7)
            panel.margins(x=0.25)
        draw_legend(figure, ncols=6, fontsize=8)
        caption = f"Step time and energy under {len(options)} compiler options, each compiled anew, modelled: {title}"
        return save_figure(name, caption, figure)


def draw_kernels(lines: Sequence[EnergyLine], *, name: str, title: str) -> Picture:
    """The step by class of kernel, each HLO operation in one (figures 10 and 15)."""
    shown = [line for line in lines if line.energy and not line.is_same]
    names = [f"{line.layout}, {line.title}" + (f", {line.option}" if line.option else "") for line in shown]
    notes = [
        "Each HLO operation is in one class; of communication only what is exposed: what is hidden is compute's time"
    ]
    notes += ["Options that leave the program as it is are left out"] if any(line.is_same for line in lines) else []
    with _open_rows(["ms of a step"], f"Time by kernel: {title}", names, notes=notes) as (figure, (panel,)):
        used = [each for each in CLASSES if any(line.energy and line.energy["kernels_ns"][each] > 0 for line in shown)]
        for row, line in enumerate(shown):
            assert line.energy
            left = 0.0
            for each in used:
                colour, hatch = _PATTERNS[each]
                length = line.energy["kernels_ns"][each] / 1e6
                panel.barh(
                    row, length, 0.62, left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.3, label=each
                )
                left += length
        draw_legend(figure, ncols=6, fontsize=8)
        return save_figure(name, f"Time of a step by class of kernel, modelled: {title}", figure)


def draw_chips(lines: Sequence[EnergyLine], *, name: str, title: str) -> Picture:
    """Use, bytes sent over ICI and watts, layout × chip, and the mean of all layouts (figures 5 and 17)."""
    shown = [line for line in lines if line.energy and line.energy["chips"]]
    maps: tuple[tuple[str, Callable[[ChipRow], float], str], ...] = (
        ("computes ÷ step", lambda chip: chip["use"], "linear"),
        ("ICI bytes of a step", lambda chip: chip.get("ici_bytes", np.nan), "log"),
        ("W of a chip", lambda chip: chip["watts"], "linear"),
    )
    names = [*(f"{line.layout}, {line.title}" for line in shown), "mean"]
    widest = max(len(_chips(line)) for line in shown)
    notes = ["A row is a layout, a column a chip; the last row: the mean of layouts of as many chips as the widest"]
    with _open_rows(
        [heading for heading, *_ in maps], f"By chip: {title}", names, notes=notes, under=0.5, gap=0.95
    ) as (figure, panels):
        for panel, (_, value, scale) in zip(panels, maps, strict=True):
            table = np.full((len(names), min(widest, _MOST_CHIPS)), np.nan)
            for row, line in enumerate(shown):
                values = _pooled(np.array([value(chip) for chip in _chips(line)]), _MOST_CHIPS)
                table[row, : values.size] = values
            full = ~np.isnan(table[:-1]).any(axis=1)
            if full.any():
                table[-1] = table[:-1][full].mean(axis=0)
            known = table[np.isfinite(table)] if np.isfinite(table).any() else np.zeros(1)
            norm: Normalize = Normalize(min(float(known.min()), _SPAN * float(known.max())), float(known.max()))
            if scale == "log" and (known > 0).any():
                table = np.where(table > 0, table, np.nan)
                norm = LogNorm(float(known[known > 0].min()), float(known.max()) * 1.0001)
            image = panel.imshow(
                table,
                aspect="auto",
                cmap=COLOURS,
                norm=norm,
                interpolation="nearest",
                extent=(-0.5, table.shape[1] - 0.5, len(names) - 0.5, -0.5),
            )
            if table.size <= _MOST_WRITTEN:
                _write(panel, table, norm)
            panel.axhline(len(names) - 1.5, color="white", linewidth=2)
            panel.set_xlabel("chip")
            box = panel.get_position()
            bar = figure.add_axes((box.x1 + 0.05 / _WIDE, box.y0, 0.1 / _WIDE, box.height))
            figure.colorbar(image, cax=bar).ax.tick_params(labelsize=7, which="both")
            if scale == "log":
                for axis_format in (bar.yaxis.set_major_formatter, bar.yaxis.set_minor_formatter):
                    axis_format(EngFormatter(sep=""))
        return save_figure(name, f"Use, ICI bytes and power of each chip, modelled: {title}", figure)


def _write(panel: Axes, table: Floats, norm: Normalize) -> None:
    """The number of each cell, dark on light and light on dark."""
    for row, column in np.argwhere(np.isfinite(table)).tolist():
        value = float(table[row, column])
        dark = float(norm(value)) > _DARK
        words = f"{value:.2f}" if value < _SMALL else EngFormatter(places=0, sep="")(value)
        panel.text(column, row, words, ha="center", va="center", fontsize=5.5, color="white" if dark else INK)


def _chips(line: EnergyLine) -> list[ChipRow]:
    return line.energy["chips"] if line.energy else []


def _pooled(values: Floats, most: int) -> Floats:
    """Means of neighbours where there are more than can be shown."""
    return np.array([part.mean() for part in np.array_split(values, most)]) if values.size > most else values


def _curves(lines: Sequence[EnergyLine]) -> list[list[EnergyLine]]:
    """The lines of each mesh and framework that differ in their microbatches."""
    groups: dict[tuple[str, str], list[EnergyLine]] = {}
    for line in lines:
        if line.energy:
            groups.setdefault((line.mesh, line.title), []).append(line)
    curves = [sorted(rows, key=lambda line: line.microbatches) for rows in groups.values()]
    return [rows for rows in curves if len({line.microbatches for line in rows}) > 1]


def _range(energy: EnergySummary, name: Literal["per_token_j", "mean_w"]) -> tuple[float, float, float]:
    if name == "mean_w":
        return energy["low_mean_w"], energy["mean_w"], energy["high_mean_w"]
    return energy["low_per_token_j"], energy["per_token_j"], energy["high_per_token_j"]


def _exact(value: float | None) -> tuple[float, float, float] | None:
    return None if value is None else (value, value, value)


def _point(panel: Axes, value: tuple[float, float, float] | None, at: float, *, arm: int, label: str) -> None:
    if value is None:
        return
    low, middle, high = value
    colour, marker, _ = arm_style(arm)
    panel.plot([low, high], [at, at], color=colour, linewidth=1.4)
    panel.plot([middle], [at], marker, color=colour, markersize=5, label=label, clip_on=False)


@contextmanager
def _open_rows(
    headings: Sequence[str],
    title: str,
    names: Sequence[str],
    *,
    source: str = MODELLED,
    notes: Sequence[str] = (),
    under: float = _UNDER,
    gap: float = 0.3,
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with a row for each name, and a panel for each heading."""
    count = max(len(names), 1)
    left = 0.3 + 0.07 * max(map(len, names), default=0)
    wide = (_WIDE - left - 0.2) / len(headings)
    high = [_OVER, count * _ROW, under, 0.25]
    with open_figure(title, [source, *notes], high=high, wide=_WIDE) as (figure, tall, _):
        panels = []
        for number, heading in enumerate(headings):
            place = ((left + number * wide) / _WIDE, (under + 0.25) / tall, (wide - gap) / _WIDE, count * _ROW / tall)
            panel = figure.add_axes(place)
            panel.set_ylim(count - 0.5, -0.5)
            panel.set_yticks(range(len(names)), ["" if number else word for word in names], parse_math=False)
            panel.tick_params(labelsize=8)
            panel.set_title(heading, loc="left", fontsize=8.5)
            panels.append(panel)
        yield figure, panels
