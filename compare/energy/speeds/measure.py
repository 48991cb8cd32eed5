"""The report of a run with its energies, by the coefficients of its chips or of a user's file."""

from dataclasses import dataclass
from pathlib import Path

from compare.report.model.codec import JsonObject, encode
from compare.report.model.report import Report
from compare.report.programs import list_failures
from compare.run.errors import WorkError
from compare.run.folder.load_run import judge_run, read_run
from compare.run.folder.timelines import NO_JOULES, add_times


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """The answer."""

    report: Report
    failures: tuple[str, ...]
    """A line for each compiled program that has no energy."""


def measure_run(folder: Path, *, chip: Path | None) -> MeasuredRun:
    """Judged and timed again, nothing written.  `WorkError` where the run has no modelled program of its own slice.

    chip: a user's file; `None`: that of the run folder, or the generation's.
    """
    judged = judge_run(read_run(folder))
    times = judged.timelines(chip=chip)
    report = add_times(judged.report(), judged.programs, times)
    compiled = [program.result for program in judged.programs if not program.result.executed]
    unmodelled = [
        f"left out: {'/'.join(result.key)}: its step cannot be modelled: {times.errors[result.key]}"
        for result in compiled
        if result.key in times.errors
    ]
    failures = (*list_failures(compiled), *unmodelled)
    if report.energy_model is None:
        why = [note for timeline in times.by_key.values() for note in timeline.notes if note.startswith(NO_JOULES)][:1]
        raise WorkError("; ".join([f"{folder} has no program whose step was modelled", *failures, *why]))
    return MeasuredRun(report=report, failures=failures)


def list_energies(report: Report) -> JsonObject:
    """As JSON: the coefficients, then phase -> arm -> cell -> energy, and the difference of the compared programs."""
    phases = {}
    for name, phase in report.phases.items():
        energies = {
            arm: {program.cell: encode(program.energy) for program in programs.compiled if program.energy}
            for arm, programs in phase.arms.items()
        }
        phases[name] = {
            "arms": energies,
            "difference": encode(phase.energy_difference) if phase.energy_difference else None,
        }
    return {"energy_model": encode(report.energy_model), "phases": phases}
