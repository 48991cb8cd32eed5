"""The compiled programs of many cases, and the collectives in them."""

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.contract.reference_algorithms import required_rows
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from meshes.case import Case
from tests.kept import describe, fill
from tests.laws.law import Program, Setting
from tests.laws.workers import FAILED, run

Found = Counter[tuple[str, str, int]]
"""Block, kind@axes and payload bytes of one: how often the busiest device runs it in a step."""

Words = tuple[tuple[str, str], ...]


RESULTS = ("about.json", "optimized.hlo.gz")


class DeadError(AssertionError):
    """A program that could not be made: what its worker said last."""


@dataclass(frozen=True, slots=True)
class Job:
    """One program to make."""

    arm: str
    case: Case
    backend: str

    @classmethod
    def of(cls, setting: Setting, phase: str, program: Program, words: Words = ()) -> "Job":
        """words: of the case, beside the program's own."""
        return cls(program.arm, setting.case(phase, program, **dict(words)), setting.backend)

    @property
    def key(self) -> str:
        return f"{self.arm} {self.backend} {self.case.name}"


def compile_jobs(jobs: Sequence[Job], out: Path) -> Mapping[str, Path]:
    """The folder of each job, by its key: lowered in one process an arm, compiled in one for each compiler."""
    folders = {job.key: out.resolve() / str(number) for number, job in enumerate(jobs)}
    job_of = {folders[job.key]: job for job in jobs}
    for folder, job in job_of.items():
        folder.mkdir()
        (folder / "case.json").write_text(job.case.to_json())
        describe(
            folder,
            "meshes",
            job.arm,
            "compare/compile",
            "tests/laws/lowering.py",
            "tests/laws/compiling.py",
            arm=job.arm,
            backend=job.backend,
        )

    def make(missing: Sequence[Path]) -> None:
        for arm in dict.fromkeys(job_of[folder].arm for folder in missing):
            run("tests.laws.lowering", arm, folders=[folder for folder in missing if job_of[folder].arm == arm])
        for backend in dict.fromkeys(job_of[folder].backend for folder in missing):
            chosen = [folder for folder in missing if job_of[folder].backend == backend]
            run("tests.laws.compiling", backend, folders=chosen)

    fill(list(job_of), make, results=RESULTS)
    return folders


def read_text(folder: Path) -> str:
    """The optimized HLO of a job.  Raises `DeadError` where there is none."""
    if (folder / FAILED).exists():
        raise DeadError((folder / FAILED).read_text())
    return gzip.decompress((folder / "optimized.hlo.gz").read_bytes()).decode()


def count_collectives(folder: Path) -> Found:
    """What a program has; what the compiler has combined counts once for each thing that it carries."""
    text = read_text(folder)
    case = Case.from_json((folder / "case.json").read_text())
    rows = collectives(read(text), case.mesh.split_axes, contract=required_rows(case))
    counts: Found = Counter()
    for row in rows:
        assert row.executions is not None, (row.name, row.loops)
        assert row.executions_are == "exact", (row.name, row.executions_are)
        combined = row.operands if len(row.operands) > 1 else ()
        for part in combined or (row,):
            counts[part.scope, f"{row.kind}@{row.axes}", part.payload_bytes] += row.executions
    return counts


def without_shift(counts: Found) -> tuple[int, Found]:
    """How often the pipeline shifts, and all else."""
    shifts = [row for row in counts if row[0] == "pipeline.shift"]
    return sum(counts[row] for row in shifts), Counter(
        {row: times for row, times in counts.items() if row not in shifts}
    )
