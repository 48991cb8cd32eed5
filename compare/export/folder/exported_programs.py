"""The programs of a run that are exported, each with its timeline."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compare.export.folder.errors import ExportError
from compare.report.programs import UNREADABLE, JudgedProgram, ProgramResult, describe_failure, judge_programs
from compare.run.folder.load_run import Run
from compare.run.folder.timelines import build_timelines
from compare.timeline.timeline import UNKNOWN, Timeline


@dataclass(frozen=True)
class SelectedProgram:
    """A program that was read."""

    run: Run
    """Its case is the run's: a program that was run on CPU devices has a smaller one of its own."""
    program: JudgedProgram

    @property
    def platform(self) -> str:
        """`cpu` of a program that was run on CPU devices, else `tpu`."""
        return "cpu" if (self.program.about.executed or {}).get("platform") == "cpu" else "tpu"

    @property
    def words(self) -> str:
        """`jax/decode/tpu`."""
        return "/".join(self.program.result.key)

    @property
    def name(self) -> str:
        """`llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4-jax-prefill-tpu`."""
        arm, phase, cell = self.program.result.key
        return "-".join((self.run.case.name, arm, phase, cell.replace("+", "-")))

    @cached_property
    def timeline(self) -> Timeline:
        """Measured where it was run, else modelled.  `ExportError` where it has none."""
        key = self.program.result.key
        times = build_timelines([self.program], folder=self.run.folder)
        if key not in times.by_key:
            why = times.errors.get(key) or self.program.result.error or "its program cannot be read"
            raise ExportError(f"{self.words} of {self.run.folder} has no timeline: {why}")
        if UNKNOWN in times.by_key[key].stands_for:
            raise ExportError(f"{self.words} of {self.run.folder} was measured, and its profile shows no device")
        return times.by_key[key]


def select_programs(run: Run, *, arm: str = "", phase: str = "", cell: str = "") -> Iterator[SelectedProgram]:
    """Every program that was compiled and has these words; all where none is given.

    `ExportError` where there is none, or one of them cannot be read.
    """
    wanted = (arm, phase, cell)
    selected = run.select(wanted)
    _refuse_unreadable(run, selected)
    results = [result for result in selected if result.hlo is not None]
    if not results:
        compiled = ", ".join("/".join(result.key) for result in run.results if result.hlo is not None)
        words = "/".join(word or "*" for word in wanted)
        raise ExportError(f"{run.folder} has no compiled program {words}; it has {compiled or 'none at all'}")
    for result in results:
        (program,) = judge_programs(run.case, [result])
        _refuse_unreadable(run, [program.result])
        yield SelectedProgram(run, program)


def _refuse_unreadable(run: Run, results: Iterable[ProgramResult]) -> None:
    failures = [describe_failure(result) for result in results if result.status in UNREADABLE]
    if failures:
        raise ExportError(
            f"nothing of {run.folder} is written: {'; '.join(failures)}; choose by --framework, --phase, --variant"
        )
