"""The headline of energy: what a step takes, and how much of it is for communication that the plan does not need."""

from compare.render.time.timing_section import ProgramTiming, timings_by_phase
from compare.render.units import joules_text, span_text
from compare.report.grouping import group_by
from compare.report.model.energy import StepEnergy
from compare.report.model.report import Report


def energy_sentence(report: Report) -> str:
    """`Energy, modelled: of 334 J (256–519) a TorchXLA prefill step, 37.6 J (31.0–51.8) are for …; ranges take …`.

    The arm with the most of that comes first.  Of the default programs; empty where none has an energy.
    """
    every = [timing for timings in timings_by_phase(report).values() for timing in timings]
    by_arm = group_by((each for each in every if each.default and each.energy), lambda timing: timing.arm)
    if not by_arm:
        return ""
    first, *others = sorted(by_arm.values(), key=lambda timings: -sum(_of(timing).avoidable_j for timing in timings))
    words = "; ".join(_first_words(timing, begins=not index) for index, timing in enumerate(first))
    rest = "; ".join(f"{timings[0].title}: {' and '.join(map(_other_words, timings))}" for timings in others)
    model = report.energy_model
    calibrated = f" (calibrated on {model.calibrated_on})" if model and model.calibrated_on else ""
    return f"Energy, modelled{calibrated}: {words}{f' ({rest})' if rest else ''}; ranges take the times as exact."


def _first_words(timing: ProgramTiming, *, begins: bool) -> str:
    """`a TorchXLA prefill step takes 334 J (256–519), of which 37.6 J (31.0–51.8) is avoidable communication`."""
    energy = _of(timing)
    step = span_text(energy.step_j, energy.low_j, energy.high_j, unit="J")
    avoidable = span_text(energy.avoidable_j, *energy.avoidable_span_j, unit="J")
    if begins:
        return f"a {timing.title} {timing.phase} step takes {step}, of which {avoidable} is avoidable communication"
    return f"a {timing.phase} step {step}, of which {avoidable}"


def _other_words(timing: ProgramTiming) -> str:
    energy = _of(timing)
    return f"{joules_text(energy.avoidable_j)} of {joules_text(energy.step_j)}"


def _of(timing: ProgramTiming) -> StepEnergy:
    assert timing.energy is not None
    return timing.energy
