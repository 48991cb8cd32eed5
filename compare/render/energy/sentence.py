"""The headline of energy: what a step takes, and how much of it is for communication that the plan does not need."""

from compare.render.time.timing_section import ProgramTiming, timings_by_phase, with_energy
from compare.render.units import joules_text, span_text
from compare.report.grouping import group_by
from compare.report.model.energy import StepEnergy
from compare.report.model.report import Report


def energy_sentence(report: Report) -> str:
    """`Energy, modelled: … of … a TorchXLA prefill step …; ranges take the times as exact.`

    The arm with the most of that comes first.  Of the default programs; empty where none has an energy.
    """
    known = [program for timings in timings_by_phase(report).values() for program in with_energy(timings)]
    by_arm = group_by(known, lambda program: program[0].arm)
    if not by_arm:
        return ""
    first, *others = sorted(by_arm.values(), key=lambda programs: -sum(energy.avoidable_j for _, energy in programs))
    words = "; ".join(_first_words(*program, begins=not index) for index, program in enumerate(first))
    rest = "; ".join(f"{programs[0][0].title}: {' and '.join(map(_other_words, programs))}" for programs in others)
    model = report.energy_model
    calibrated = f" (calibrated on {model.calibrated_on})" if model and model.calibrated_on else ""
    return f"Energy, modelled{calibrated}: {words}{f' ({rest})' if rest else ''}; ranges take the times as exact."


def _first_words(timing: ProgramTiming, energy: StepEnergy, *, begins: bool) -> str:
    """`a TorchXLA prefill step takes 334 J (256–519), of which 37.6 J (31.0–51.8) is avoidable communication`."""
    step = span_text(energy.step_j, energy.low_j, energy.high_j, unit="J")
    avoidable = span_text(energy.avoidable_j, *energy.avoidable_span_j, unit="J")
    if begins:
        return f"a {timing.title} {timing.phase} step takes {step}, of which {avoidable} is avoidable communication"
    return f"a {timing.phase} step {step}, of which {avoidable}"


def _other_words(program: tuple[ProgramTiming, StepEnergy]) -> str:
    _, energy = program
    return f"{joules_text(energy.avoidable_j)} of {joules_text(energy.step_j)}"
