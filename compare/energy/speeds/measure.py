"""The report of a run with its energies, by the coefficients of its chips or of a user's file."""

from pathlib import Path

from compare.report.model.codec import JsonObject, encode
from compare.report.model.report import Report
from compare.report.programs import list_unread
from compare.run.errors import WorkError
from compare.run.folder.load_run import judge_run, read_run
from compare.run.folder.timelines import NO_JOULES, add_times


def measure_run(folder: Path, *, chip: Path | None) -> tuple[Report, tuple[str, ...]]:
    """The report, judged and timed again, and a line for each compiled program that has no energy.

    `WorkError` where the run has no modelled program of its own slice.  Nothing is written.
    chip: a user's file; `None`: that of the run folder, or the generation's.
    """
    judged = judge_run(read_run(folder).without_passes())
    times = judged.timelines(chip=chip)
    report = add_times(judged.report(), judged.programs, times)
    unmodelled = (
        f"left out: {'/'.join(program.result.key)}: its step cannot be modelled: {times.errors[program.result.key]}"
        for program in judged.programs
        if program.result.key in times.errors and not program.result.executed
    )
    failures = (*list_unread(judged.programs), *unmodelled)
    if report.energy_model is None:
        why = [note for timeline in times.by_key.values() for note in timeline.notes if note.startswith(NO_JOULES)][:1]
        raise WorkError("; ".join([f"{folder} has no program whose step was modelled", *failures, *why]))
    return report, failures


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
