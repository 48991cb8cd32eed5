"""The figure of a sweep: step time of both frameworks, and exposed communication by verdict, over one number."""

from collections.abc import Sequence
from math import log2

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from compare.render.figures import INK, STYLE, UNCLEAR, VERDICTS, draw_heading, heading_inches, save_figure
from compare.render.picture import Picture
from compare.render.units import time_text
from compare.simulate.what_if.request import Sweep
from compare.simulate.what_if.result import SubjectResult

ARMS = (("#147a70", "o"), ("#b8442c", "s"), ("#6a56a5", "^"))
"""Colour and marker of the first arm, the second …; no colour is a verdict's."""
_WIDE, _ROW = 8.6, 2.3
"""Inches."""


def draw_sweep(sweep: Sweep, results: Sequence[SubjectResult]) -> Picture:
    """A row for each phase: the steps of all arms, then the exposed time of each."""
    phases = list(dict.fromkeys(each.subject.phase for each in results))
    arms = list(dict.fromkeys(each.subject.arm for each in results))
    notes = [f"Simulated on {results[0].machine}, not measured; mean over devices"]
    head = heading_inches(notes)
    tall = head + _ROW * len(phases) + 0.35
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_WIDE, tall))
        draw_heading(figure, f"Step time and exposed communication as {sweep.word} changes", notes)
        wide = _WIDE / (1 + len(arms))
        for row, phase in enumerate(phases):
            of_phase = [each for each in results if each.subject.phase == phase]
            bottom = (tall - head - _ROW * (row + 1) + 0.55) / tall
            size = ((wide - 0.85) / _WIDE, (_ROW - 0.95) / tall)
            most = max(outcome.total_exposed_ns for each in of_phase for _, outcome in each.sweep)
            panel = figure.add_axes((0.72 / _WIDE, bottom, *size))
            _draw_steps(panel, of_phase, arms)
            _finish(panel, sweep, f"{phase}: step")
            for each in of_phase:
                left = (wide * (1 + arms.index(each.subject.arm)) + 0.72) / _WIDE
                panel = figure.add_axes((left, bottom, *size))
                _draw_exposed(panel, each)
                panel.set_ylim(0, most * 1.05 or 1)
                _finish(panel, sweep, f"{each.subject.title}: exposed")
        handles = {label: handle for panel in figure.axes for handle, label in zip(*panel.get_legend_handles_labels(),
                                                                                   strict=True)}  # fmt: skip
        figure.legend(list(handles.values()), list(handles), loc="lower center", ncols=6, frameon=False)
        caption = f"Simulated, not measured: step time and exposed communication by verdict, over {sweep.word}"
        return save_figure("what-if", caption, figure)


def _draw_steps(panel: Axes, results: Sequence[SubjectResult], arms: Sequence[str]) -> None:
    for each in results:
        colour, marker = ARMS[arms.index(each.subject.arm) % len(ARMS)]
        values = [value for value, _ in each.sweep]
        steps = [outcome.step_ns for _, outcome in each.sweep]
        panel.plot(values, steps, color=colour, marker=marker, markersize=3, linewidth=1.6, label=each.subject.title)
    panel.set_ylim(bottom=0)


def _draw_exposed(panel: Axes, each: SubjectResult) -> None:
    values = [value for value, _ in each.sweep]
    colours = {**VERDICTS, "unknown": UNCLEAR}
    used = [verdict for verdict in colours if any(outcome.exposed_ns[verdict] > 0 for _, outcome in each.sweep)]
    rows = [[outcome.exposed_ns[verdict] for _, outcome in each.sweep] for verdict in used]
    if rows:
        panel.stackplot(values, *rows, colors=[colours[verdict] for verdict in used], labels=used)


def _finish(panel: Axes, sweep: Sweep, title: str) -> None:
    panel.set_title(title, loc="left", parse_math=False)
    if sweep.is_log:
        panel.set_xscale("log")
        panel.xaxis.set_minor_locator(NullLocator())
        octaves = [value for value in sweep.values if log2(value).is_integer()]
        panel.set_xticks(octaves if len(octaves) > 2 else [sweep.values[0], sweep.values[-1]])
    suffix = " ×" if sweep.is_factor else ""
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}{suffix}"))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value) if value > 0 else "0"))
    if sweep.is_factor:
        panel.axvline(1, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
