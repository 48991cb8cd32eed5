"""The programs of a run that are exported, each with its timeline."""

from collections.abc import Iterator
from dataclasses import dataclass

from compare.export.folder.errors import ExportError
from compare.report.programs import JudgedProgram, judge_programs
from compare.run.folder.load_run import Run
from compare.run.folder.timelines import build_timelines
from compare.timing.timeline import UNKNOWN, Timeline


@dataclass(frozen=True, slots=True)
class TimedProgram:
    """A program that was read, and its timeline: measured where it was run, else modelled."""

    run: Run
    """Its case is the run's: a program that was run on CPU devices has a smaller one of its own."""
    program: JudgedProgram
    timeline: Timeline


def select_programs(run: Run, *, arm: str = "", phase: str = "", cell: str = "") -> Iterator[TimedProgram]:
    """Every program that was compiled and has these words; all where none is given.

    `ExportError` where there is none, or one has no timeline.
    """
    wanted = (arm, phase, cell)
    results = [
        result
        for result in run.results
        if result.hlo is not None and all(word in ("", part) for word, part in zip(wanted, result.key, strict=True))
    ]
    if not results:
        compiled = ", ".join("/".join(result.key) for result in run.results if result.hlo is not None)
        words = "/".join(word or "*" for word in wanted)
        raise ExportError(f"{run.folder} has no compiled program {words}; it has {compiled or 'none at all'}")
    for result in results:
        (program,) = judge_programs(run.case, [result])
        times = build_timelines([program], folder=run.folder)
        if result.key not in times.by_key:
            why = times.errors.get(result.key) or program.result.error or "its program cannot be read"
            raise ExportError(f"{'/'.join(result.key)} of {run.folder} has no timeline: {why}")
        if UNKNOWN in times.by_key[result.key].stands_for:
            raise ExportError(f"{'/'.join(result.key)} of {run.folder} was measured, and its profile shows no device")
        yield TimedProgram(run, program, times.by_key[result.key])
