"""The figure of `--frequency`: step time, energy and energy × delay of both frameworks over the core's frequency."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from compare.energy.core_speed import Point
from compare.energy.speeds.frequency import Curve
from compare.energy.speeds.subjects import Subjects
from compare.render.figures import INK, draw_legend, open_figure, save_figure
from compare.render.palette import arm_style
from compare.render.picture import Picture

_WIDE, _ROW = 8.6, 2.35
"""Inches."""

_COLUMNS: tuple[tuple[str, Callable[[Point], float]], ...] = (
    ("step time, ms", lambda point: point.step_ns / 1e6),
    ("energy of a step, J", lambda point: point.step_j),
    ("energy × delay, J·s", lambda point: point.delay_j_s),
)


def draw_curves(subjects: Subjects, curves: Sequence[Curve]) -> Picture:
    """A row for each phase; the point of least energy, and of least energy × delay, is marked."""
    phases = list(dict.fromkeys(curve.subject.phase for curve in curves))
    arms = list(dict.fromkeys(curve.subject.arm for curve in curves))
    notes = [
        f"{subjects.basis}; {subjects.voltage_words}",
        "Shaded: every coefficient of energy over its range; marked: the least of each curve",
    ]
    title, high = "A step at other frequencies of the core", [_ROW * len(phases), 0.45]
    with open_figure(title, notes, high=high, wide=_WIDE) as (figure, tall, top):
        for row, phase in enumerate(phases):
            bottom = (top - _ROW * (row + 1) + 0.55) / tall
            for column, (what, value) in enumerate(_COLUMNS):
                left = (0.62 + column * (_WIDE - 0.1) / 3) / _WIDE
                panel = figure.add_axes((left, bottom, ((_WIDE - 0.1) / 3 - 0.8) / _WIDE, (_ROW - 1.0) / tall))
                for curve in curves:
                    if curve.subject.phase == phase:
                        _draw_curve(panel, curve, column, value, style=arm_style(arms.index(curve.subject.arm)))
                panel.set_title(f"{phase}: {what}", loc="left", fontsize=9)
                panel.axvline(1, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
                panel.set_ylim(bottom=0)
                if row == len(phases) - 1:
                    panel.set_xlabel("frequency ÷ nominal")
        draw_legend(figure, ncols=4)
        caption = f"{subjects.basis}: step time, energy and energy × delay over the frequency of the core"
        return save_figure("energy-frequency", caption, figure)


def _draw_curve(
    panel: Axes, curve: Curve, column: int, value: Callable[[Point], float], *, style: tuple[str, str, str]
) -> None:
    colour, marker, line = style
    frequencies = [point.frequency for point in curve.points]
    panel.plot(
        frequencies,
        [value(point) for point in curve.points],
        color=colour,
        linestyle=line,
        linewidth=1.6,
        label=curve.subject.title,
    )
    if column == 1:
        low, high = [point.low_j for point in curve.points], [point.high_j for point in curve.points]
        panel.fill_between(frequencies, low, high, color=colour, alpha=0.13, linewidth=0)
    if column:
        best = curve.best_energy if column == 1 else curve.best_delay
        panel.plot(best.frequency, value(best), marker=marker, color=colour, markersize=6, linestyle="none")
