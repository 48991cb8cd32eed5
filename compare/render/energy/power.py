"""Power over a step, as curves that a page draws: of the default programs, those of a phase on one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compare.render.blocks import Widget
from compare.render.time.timing_section import ProgramTiming, with_energy
from compare.render.units import capitalize_first, span_text, time_text, watts_text
from compare.report.model.energy import StepEnergy

_WIDE, _TALL = 1000, 60
"""Units of a drawing, which the page stretches to its own width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCurve:
    """One program: SVG paths of its windows' power, and of its mean."""

    title: str
    cell: str
    words: str
    area: str
    mean: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePower:
    """The curves of a phase; words: their scale."""

    name: str
    curves: tuple[PowerCurve, ...]
    words: str
    wide: int = _WIDE
    tall: int = _TALL


def power_blocks(phases: Mapping[str, Sequence[ProgramTiming]]) -> list[Widget]:
    """For below the strip; empty where no default program has an energy."""
    drawn = [power for phase, timings in phases.items() if (power := draw_phase(phase, timings))]
    return [Widget(template="power.html.j2", values={"phases": drawn})] if drawn else []


def draw_phase(phase: str, timings: Sequence[ProgramTiming]) -> PhasePower | None:
    """The curves of one phase."""
    known = with_energy(timings)
    if not known:
        return None
    longest = max(timing.times.step_ns or 1.0 for timing, _ in known)
    highest = max(max(energy.power_w) for _, energy in known)
    window = time_text(max(energy.window_ns for _, energy in known))
    source = capitalize_first(" and ".join(dict.fromkeys(timing.label for timing, _ in known)))
    return PhasePower(
        name=phase,
        curves=tuple(_curve(timing, energy, longest, highest) for timing, energy in known),
        words=f"{source}: all chips together, the mean of each {window}; dashed: the mean of the step. "
        f"Curves are {time_text(longest)} wide and {watts_text(highest)} high.",
    )


def _curve(timing: ProgramTiming, energy: StepEnergy, longest: float, highest: float) -> PowerCurve:
    end = (timing.times.step_ns or longest) * _WIDE / longest
    width, height = energy.window_ns * _WIDE / longest, _TALL / highest if highest else 0.0
    tops = [_TALL - watts * height for watts in energy.power_w]
    steps = (f"V{top:.1f}H{min((index + 1) * width, end):.1f}" for index, top in enumerate(tops))
    middle = _TALL - energy.mean_w * height
    mean = span_text(energy.mean_w, energy.low_mean_w, energy.high_mean_w, unit="W")
    peak = span_text(energy.peak_w, energy.low_peak_w, energy.high_peak_w, unit="W")
    return PowerCurve(
        title=timing.title,
        cell=timing.cell,
        words=f"mean {mean}, peak {peak}" if energy.has_peak else f"mean {mean}, one window: no peak",
        area=f"M0 {_TALL}{''.join(steps)}V{_TALL}Z",
        mean=f"M0 {middle:.1f}H{end:.1f}",
    )
