"""The figure of energy: time and joules of a step by component.  Modelled."""

from collections.abc import Mapping, Sequence
from functools import partial

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from compare.render.energy.section import ARITHMETIC, BREAKDOWN
from compare.render.figures import INK, WIDE, open_figure, save_figure
from compare.render.picture import Drawing, Picture
from compare.render.time.timing_section import ProgramTiming, with_energy
from compare.render.units import joules_text, span_text, time_text
from compare.report.model.energy import StepEnergy

# Neighbours differ in grey too, by how dark they are and by their hatching.
_LOOK = {
    "compute": ("#33415a", ""),
    "memory": ("#bfd08f", "////"),
    "network": ("#c96a1b", "\\\\\\\\"),
    "ici": ("#c96a1b", "\\\\\\\\"),
    "dcn": ("#eebf8b", "xxxx"),
    "idle": ("#e3e6ea", ""),
    "static": ("#e3e6ea", ""),
}
_TIME = ("compute", "memory", "network", "idle")
_ENERGY = ("compute", "memory", "ici", "dcn", "static")
_LEGEND = {
    "compute": ARITHMETIC,
    "memory": "memory",
    "ici": "network: exposed time, ICI",
    "dcn": "DCN",
    "static": "idle time, static energy",
}


Known = Sequence[tuple[ProgramTiming, StepEnergy]]


def list_drawings(phases: Mapping[str, Sequence[ProgramTiming]]) -> list[Drawing]:
    """A figure for every phase, of its default programs with an energy."""
    drawings: list[Drawing] = []
    for phase, timings in phases.items():
        known = with_energy(timings)
        drawings += [partial(draw_breakdown, phase, known)] if known else []
    return drawings


def draw_breakdown(phase: str, known: Known) -> Picture:
    """Two stacks of bars: what a step's time goes into, and what its energy."""
    labels = [timing.label for timing, _ in known]
    names, height = [timing.name for timing, _ in known], 0.42 * len(known)
    left = 0.4 + 0.075 * max(map(len, names))
    title, high = f"{phase}: time and energy of a step by component", [2 * (height + 0.72), 0.3]
    with mpl.rc_context({"hatch.linewidth": 0.6}), open_figure(title, labels, high=high) as (figure, tall, top):
        of_time = [energy.time_by_component_ns for _, energy in known]
        of_energy = [_joules(energy) for _, energy in known]
        spans = [(energy.low_j, energy.step_j, energy.high_j) for _, energy in known]
        for title, stacked, parts, ends in (
            ("time, mean over devices", _TIME, of_time, []),
            ("energy of all chips; line: its range", _ENERGY, of_energy, spans),
        ):
            top -= 0.4 + height
            panel = figure.add_axes((left / WIDE, top / tall, (WIDE - left - 0.25) / WIDE, height / tall))
            top -= 0.32
            _stack(panel, names, stacked, parts, spans=ends)
            panel.set_title(title, loc="left")
        shown = [name for name in _LEGEND if any(joules[name] for joules in of_energy)]
        handles = [
            Patch(facecolor=_LOOK[name][0], hatch=_LOOK[name][1], edgecolor=INK, linewidth=0.4, label=_LEGEND[name])
            for name in shown
        ]
        figure.legend(handles=handles, loc="lower center", ncols=5, frameon=False)
        caption = f"Modelled, not measured, {phase}: time and energy of a step by component"
        return save_figure(f"energy-{phase}{BREAKDOWN}", caption, figure)


def _joules(energy: StepEnergy) -> dict[str, float]:
    parts = energy.by_component_j
    return {"compute": parts["matrix"] + parts["vector"], **{name: parts[name] for name in _ENERGY[1:]}}


def _stack(
    panel: Axes,
    programs: Sequence[str],
    names: Sequence[str],
    parts: Sequence[Mapping[str, float]],
    *,
    spans: Sequence[tuple[float, float, float]],
) -> None:
    """spans: of energies, least, value and most, drawn as a line; without them the parts are times."""
    rows, left = np.arange(len(programs)), np.zeros(len(programs))
    for name in names:
        amounts = np.array([row[name] for row in parts])
        if amounts.any():
            colour, hatch = _LOOK[name]
            panel.barh(rows, amounts, left=left, height=0.66, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.4)
            left += amounts
    furthest = left.copy()
    for row, (low, value, high) in enumerate(spans):
        panel.plot([low, high], [row, row], color=INK, linewidth=1.2, marker="|", markersize=7)
        furthest[row] = max(high, value)
    for row, end in enumerate(furthest):
        words = span_text(spans[row][1], spans[row][0], spans[row][2], unit="J") if spans else time_text(left[row])
        panel.annotate(words, (end, row), (6, 0), textcoords="offset points", va="center", fontsize=8, parse_math=False)
    panel.set_yticks(rows, programs, parse_math=False)
    panel.invert_yaxis()
    panel.set_xlim(0, max(float(furthest.max(initial=0)), 1e-12) * 1.28)
    panel.xaxis.set_major_locator(MaxNLocator(5))
    text = joules_text if spans else time_text
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
