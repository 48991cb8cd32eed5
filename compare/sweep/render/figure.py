"""The figure of a sweep: emitted over inherent bytes of each arm, by mesh, a panel for each model and phase."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from compare.render.figures import INK, draw_legend, open_figure, save_figure
from compare.render.palette import UNCLEAR, arm_style
from compare.render.picture import Picture
from compare.render.report.missing_notes import mark_ratio
from compare.render.units import bytes_text, list_text, ratio_text
from compare.sweep.render.lines import case_lines, footnotes, is_short, label
from compare.sweep.summary import ResultRow, Sweep

_BELOW = 0.995
"""A ratio below this is not shown as 1."""

LOG_FROM = 6.0
"""Where a ratio is larger, the axis is logarithmic."""
_MOST_RATIO = 1e12
"""Of an axis: a file that somebody else wrote may say any number."""

_WIDE, _ROW, _OVER, _UNDER = 8.6, 0.34, 0.5, 0.42
"""Inches: of the figure, of a mesh, above and below a panel."""

_COUNTED = "Counted in the compiled default program of each framework, not measured; mean over devices"


def draw_ratios(sweep: Sweep) -> Picture:
    """Emitted over inherent bytes of each default program."""
    results = sweep["results"]
    models = list(dict.fromkeys(result["model"] for result in results))
    phases = list(dict.fromkeys(phase for result in results for phase in result["phases"])) or ["no phase"]
    rows = {model: [result for result in results if result["model"] == model] for model in models}
    notes = [_COUNTED, *footnotes(case_lines(sweep))]
    high = [sum(len(row) * _ROW + _OVER + _UNDER for row in rows.values()), 0.35]
    names = {id(result): label(sweep, result) for result in results}
    left = min(_WIDE / 2, 0.35 + 0.078 * max(map(len, names.values()), default=0))
    wide = (_WIDE - left - 0.75 * len(phases)) / len(phases)
    with open_figure("Emitted ÷ inherent bytes, by mesh", notes, high=high, wide=_WIDE) as (figure, tall, top):
        for model, model_results in rows.items():
            height = len(model_results) * _ROW
            top -= _OVER + height
            for at, phase in enumerate(phases):
                place = ((left + at * (wide + 0.75)) / _WIDE, top / tall, wide / _WIDE, height / tall)
                panel = figure.add_axes(place)
                _panel(panel, model_results, phase, arms=sweep["arms"], largest=_largest(results, phase))
                panel.set_yticks(
                    range(len(model_results)),
                    ["" if at else names[id(entry)] for entry in model_results],
                    parse_math=False,
                )
                panel.set_title(f"{model}, {phase}", loc="left", parse_math=False)
            top -= _UNDER
        draw_legend(figure, ncols=4)
        caption = f"Compiled, not measured: emitted ÷ inherent bytes of one step, by mesh, of {list_text(models)}"
        return save_figure("sweep", caption, figure)


def _panel(panel: Axes, results: Sequence[ResultRow], phase: str, *, arms: Mapping[str, str], largest: float) -> None:
    """A row of marks for each mesh, from the plan (1) to the ratio of each arm."""
    panel.set_xscale("log" if largest > LOG_FROM else "linear")
    panel.axvline(1, color=INK, linewidth=1.1, linestyle=(0, (4, 2)), label="inherent bytes")
    for row, result in enumerate(results):
        ratios = [_ratio_words(result, phase, arm) for arm in arms]
        if len(set(ratios)) == 1 and ratios[0][0] is None:  # of all arms the same: once is enough
            _mark(panel, row, *ratios[0])
            continue
        for at, (title, (ratio, words)) in enumerate(zip(arms.values(), ratios, strict=True)):
            _mark(panel, row + (at - (len(arms) - 1) / 2) * 0.36, ratio, words, number=at, label=title)
    panel.set_ylim(len(results) - 0.5, -0.5)
    low = min([1.0, *(ratio for result in results for arm in arms if (ratio := _ratio_words(result, phase, arm)[0]))])
    if largest > LOG_FROM:
        panel.set_xlim(low / 1.9 if low < _BELOW else 0.8, largest * 1.9)
        panel.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
    else:
        least = low - 0.32 * (largest - low) if low < _BELOW else 0.9
        panel.set_xlim(least, largest + 0.32 * (largest - 0.9))
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×" if value >= 0 else ""))


def _mark(panel: Axes, place: float, ratio: float | None, words: str, *, number: int = 0, label: str = "") -> None:
    """The ratio of one arm, or in words why there is none."""
    if ratio is not None:
        colour, marker, _ = arm_style(number)
        panel.plot([1, ratio], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        panel.plot([ratio], [place], marker, color=colour, markersize=5, label=label)
    # A ratio below 1 is labelled at its mark, not beyond the plan's line.
    below = ratio is not None and ratio < _BELOW
    ink, at = UNCLEAR if ratio is None else INK, (ratio if ratio is not None and below else max(ratio or 1, 1), place)
    panel.annotate(
        words,
        at,
        (-6 if below else 6, 0),
        textcoords="offset points",
        ha="right" if below else "left",
        va="center",
        color=ink,
        fontsize=7.5,
        parse_math=False,
    )


def _ratio_words(result: ResultRow, phase: str, arm: str) -> tuple[float | None, str]:
    """The ratio of an arm's default program and its label; without a ratio, the label says why."""
    summary = result["phases"].get(phase)
    programs = [] if not summary else [p for p in summary["programs"] if p["arm"] == arm and p["is_default"]]
    if not programs:
        return None, "not requested" if result["status"] == "done" else result["status"]
    program = programs[0]
    if program["wire_bytes"] is None:
        return None, str(program["status"])
    if program["ratio"] is None:
        moved = bytes_text(program["wire_bytes"])
        return None, f"no inherent bytes; {moved} emitted" if program["wire_bytes"] else "no communication"
    return min(float(program["ratio"]), _MOST_RATIO), mark_ratio(
        ratio_text(program["ratio"], program["qualifier"]), short=is_short(program)
    )


def _largest(results: Sequence[ResultRow], phase: str) -> float:
    ratios = [
        program["ratio"] or 1.0
        for result in results
        if phase in result["phases"]
        for program in result["phases"][phase]["programs"]
        if program["is_default"]
    ]
    return min(max([1.5, *ratios]), _MOST_RATIO)
