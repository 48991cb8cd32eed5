"""The figure of a sweep: step time of both frameworks, and exposed communication by verdict, over one number."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from compare.render.figures import INK, draw_legend, open_figure, save_figure
from compare.render.palette import UNCLEAR, VERDICTS, arm_style
from compare.render.picture import Picture
from compare.render.units import time_text
from compare.simulate.what_if.request import MACHINE, Sweep
from compare.simulate.what_if.what_if_result import SubjectResult

_WIDE, _ROW = 8.6, 2.3
"""Inches."""
_LONG = 28
"""Letters of a label."""
_LETTER, _BAR = 0.078, 0.21
"""Inches of a letter, and of one value of a list."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Panels in inches: a row for each phase; the first column is the steps of all arms."""

    label: float
    """Left of the first column."""
    wide: float
    """Of a column."""
    row: float

    @classmethod
    def of(cls, sweep: Sweep, num_columns: int) -> "_Layout":
        if not sweep.is_list:
            return cls(0.0, _WIDE / num_columns, _ROW)
        label = _LETTER * max(len(_label(value)) for value in sweep.values) - 0.45
        label = max(label, 0.0)
        return cls(label, (_WIDE - label) / num_columns, max(_BAR * len(sweep.values) + 1.0, 1.5))


def draw_sweep(sweep: Sweep, results: Sequence[SubjectResult]) -> Picture:
    """A row for each phase: the steps of all arms, then the exposed time of each."""
    phases = list(dict.fromkeys(each.subject.phase for each in results))
    arms = list(dict.fromkeys(each.subject.arm for each in results))
    on = "" if sweep.word == MACHINE else f" on {results[0].machine}"
    slices = ", ".join(dict.fromkeys(each.subject.modelled_for for each in results))
    notes = [f"Simulated{on}, not measured; compute as modelled for {slices}; mean over devices"]
    layout = _Layout.of(sweep, 1 + len(arms))
    title, high = f"Step time and exposed communication: {sweep.what}", [layout.row * len(phases), 0.35]
    with open_figure(title, notes, high=high, wide=_WIDE) as (figure, tall, top):
        for row, phase in enumerate(phases):
            of_phase = [each for each in results if each.subject.phase == phase]
            bottom = (top - layout.row * (row + 1) + 0.55) / tall
            size = ((layout.wide - 0.85) / _WIDE, (layout.row - 0.95) / tall)
            most = max(outcome.total_exposed_ns for each in of_phase for _, outcome in each.sweep)
            panel = figure.add_axes(((layout.label + 0.72) / _WIDE, bottom, *size))
            _draw_steps(panel, sweep, of_phase, arms)
            _finish(panel, sweep, f"{phase}: step")
            for each in of_phase:
                left = layout.label + layout.wide * (1 + arms.index(each.subject.arm)) + 0.72
                panel = figure.add_axes((left / _WIDE, bottom, *size))
                _draw_exposed(panel, sweep, each)
                (panel.set_xlim if sweep.is_list else panel.set_ylim)(0, most * 1.05 or 1)
                _finish(panel, sweep, f"{each.subject.title}: exposed")
                if sweep.is_list:
                    panel.set_yticklabels([])
        draw_legend(figure, ncols=6)
        caption = f"Simulated, not measured: step time and exposed communication by verdict: {sweep.what}"
        return save_figure("what-if", caption, figure)


def _label(value: float | str) -> str:
    text = str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _places(sweep: Sweep) -> list[float]:
    """Where each value stands: itself, or of a list its place."""
    return [place if isinstance(value, str) else value for place, value in enumerate(sweep.values)]


def _draw_steps(panel: Axes, sweep: Sweep, results: Sequence[SubjectResult], arms: Sequence[str]) -> None:
    for each in results:
        colour, marker, _ = arm_style(arms.index(each.subject.arm))
        steps = [outcome.step_ns for _, outcome in each.sweep]
        if sweep.is_list:
            panel.plot(steps, _places(sweep), color=colour, marker=marker, linestyle="none", label=each.subject.title)
        else:
            panel.plot(
                _places(sweep),
                steps,
                color=colour,
                marker=marker,
                markersize=3,
                linewidth=1.6,
                label=each.subject.title,
            )
    if sweep.is_list:
        panel.set_xlim(left=0)
        panel.grid(axis="y", color=INK, linewidth=0.4, alpha=0.25)
    else:
        panel.set_ylim(bottom=0)


def _draw_exposed(panel: Axes, sweep: Sweep, each: SubjectResult) -> None:
    places = _places(sweep)
    colours = {**VERDICTS, "unknown": UNCLEAR}
    used = [verdict for verdict in colours if any(outcome.exposed_ns[verdict] > 0 for _, outcome in each.sweep)]
    rows = [[outcome.exposed_ns[verdict] for _, outcome in each.sweep] for verdict in used]
    if sweep.is_list:
        before = [0.0] * len(places)
        for verdict, row in zip(used, rows, strict=True):
            panel.barh(places, row, 0.6, before, color=colours[verdict], label=verdict)
            before = [start + ns for start, ns in zip(before, row, strict=True)]
    elif rows:
        panel.stackplot(places, *rows, colors=[colours[verdict] for verdict in used], labels=used)


def _finish(panel: Axes, sweep: Sweep, title: str) -> None:
    panel.set_title(title, loc="left", parse_math=False)
    times = FuncFormatter(lambda value, _: time_text(value) if value > 0 else "0")
    if sweep.is_list:
        panel.xaxis.set_major_formatter(times)
        panel.xaxis.set_major_locator(MaxNLocator(3))
        panel.set_yticks(_places(sweep), [_label(value) for value in sweep.values], parse_math=False)
        panel.set_ylim(len(sweep.values) - 0.5, -0.5)
        return
    panel.yaxis.set_major_formatter(times)
    if sweep.is_log:
        numbers = [value for value in sweep.values if not isinstance(value, str)]
        panel.set_xscale("log")
        panel.xaxis.set_minor_locator(NullLocator())
        octaves = [value for value in numbers if log2(value).is_integer()]
        panel.set_xticks(octaves if len(octaves) > 2 else [numbers[0], numbers[-1]])
    suffix = "×" if sweep.is_factor else ""
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}{suffix}"))
    if sweep.is_factor:
        panel.axvline(1, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
