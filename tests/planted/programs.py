"""The programs of the table: copies of a twin with one line changed, lowered, compiled, read and judged."""

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from compare.report.model.about import About
from compare.report.programs import JudgedProgram, ProgramResult, judge_program
from compare.run.tasks import COMPILER_SOURCES
from meshes.case import Case
from tests.kept import describe, fill
from tests.laws.workers import FAILED, ROOT, run
from tests.planted.defect import ARMS, Defect, Site

PROCESSES = 2
RESULTS = ("about.json", "compiled.json", "optimized.hlo.gz")


class PlantError(AssertionError):
    """A line that is not there, or a program that could not be made."""


@dataclass(frozen=True, slots=True)
class Job:
    """One program to make: of the twin as it is, or with a line changed."""

    arm: str
    case: Case
    site: Site | None = None

    @classmethod
    def of(cls, defect: Defect, arm: str) -> "Job":
        return cls(arm, defect.case(arm), defect.sites[arm])

    @property
    def base(self) -> "Job":
        return Job(self.arm, self.case)

    @property
    def key(self) -> str:
        """`Case.name` says all that these cases differ in."""
        changed = f" {self.site.file} {self.site.new}" if self.site else ""
        return f"{self.arm} {self.case.name}{changed}"


def place_of(text: str, line: str) -> int:
    """The number of the only line with this text, its indentation apart.  Raises `PlantError` for none or several."""
    numbers = [number for number, line_text in enumerate(text.splitlines(), start=1) if line_text.strip() == line]
    if len(numbers) != 1:
        raise PlantError(f"{len(numbers)} lines are {line!r}; a defect is planted in exactly one")
    return numbers[0]


def plant(arm: str, site: Site, folder: Path) -> None:
    """A copy of the twin in the folder, with the line changed."""
    package = folder / ARMS[arm]
    shutil.copytree(ROOT / ARMS[arm], package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / site.file
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    at = place_of(text, site.old) - 1
    lines[at] = lines[at].replace(site.old, site.new)
    file.write_text("".join(lines), encoding="utf-8")


def make(jobs: Iterable[Job], out: Path) -> Mapping[str, Path]:
    """The folder of each job, by its key: an arm's programs lowered in one process, all compiled in two."""
    by_key: dict[str, Job] = {}
    for job in jobs:
        assert by_key.setdefault(job.key, job) == job, f"two jobs are {job.key}"
    folders = {key: out.resolve() / str(number) for number, key in enumerate(by_key)}
    for key, job in by_key.items():
        (folders[key] / "package").mkdir(parents=True)
        (folders[key] / "case.json").write_text(job.case.to_json())
        if job.site:
            plant(job.arm, job.site, folders[key] / "package")
        sources = (ARMS[job.arm], *COMPILER_SOURCES)
        describe(folders[key], *sources, "tests/planted/lowering.py", "tests/planted/compiling.py", arm=job.arm)
    arm_of = {folders[key]: job.arm for key, job in by_key.items()}
    fill(list(arm_of), lambda missing: _make(missing, arm_of), results=RESULTS)
    return folders


def _make(folders: Sequence[Path], arm_of: Mapping[Path, str]) -> None:
    with ThreadPoolExecutor(PROCESSES) as pool:
        arms = [(ARMS[arm], [folder for folder in folders if arm_of[folder] == arm]) for arm in ARMS]
        list(pool.map(lambda request: _lower(*request), arms))
        lowered = [folder for folder in folders if not (folder / FAILED).exists()]
        list(pool.map(_compile, (lowered[part::PROCESSES] for part in range(PROCESSES))))


def _lower(package: str, folders: Sequence[Path]) -> None:
    if folders:
        run("tests.planted.lowering", package, folders=folders)


def _compile(folders: Sequence[Path]) -> None:
    if folders:
        run("tests.planted.compiling", folders=folders)


def judge_job(job: Job, folder: Path) -> JudgedProgram:
    """A program, read and held against the contract of its case."""
    if (folder / FAILED).exists():
        raise PlantError((folder / FAILED).read_text())
    about = json.loads((folder / "about.json").read_text()) | json.loads((folder / "compiled.json").read_text())
    hlo = gzip.decompress((folder / "optimized.hlo.gz").read_bytes()).decode()
    result = ProgramResult(
        arm=job.arm, phase=job.case.phase, cell="tpu", status="ok", about=About.from_json(about), hlo=hlo
    )
    return judge_program(job.case, result)


@dataclass(frozen=True, slots=True)
class Group:
    """What a program moves in one scope by one kind over one set of axes."""

    times: int
    step_bytes: int
    verdicts: tuple[tuple[str, int], ...]
    """`inherent`, `inflated CAUSE`, `induced CAUSE`, and bytes a step; in order of their names."""


Groups = dict[tuple[str, str], Group]
"""By scope and kind@axes."""


def groups(cell: JudgedProgram) -> Groups:
    """What is combined counts once for each thing that it carries; all of this program is exactly known."""
    assert cell.judgement is not None
    times: Counter[tuple[str, str]] = Counter()
    parts: dict[tuple[str, str], Counter[str]] = {}
    for verdict in cell.judgement.verdicts:
        row = verdict.collective
        assert row.executions_are == "exact", (row.name, row.executions_are)
        key = (row.scope, f"{row.kind}@{row.axes}")
        times[key] += (row.executions or 0) * len(row.operands)
        counter = parts.setdefault(key, Counter())
        counter["inherent"] += verdict.inherent_bytes or 0
        which = "induced" if verdict.induced_bytes else "inflated"
        assert not (verdict.induced_bytes and verdict.inflated_bytes), (row.name, "is of both")
        counter.update({f"{which} {cause}": number for cause, number in verdict.causes.items()})
    return {
        key: Group(times[key], counter.total(), tuple(sorted((name, n) for name, n in counter.items() if n)))
        for key, counter in parts.items()
    }


def list_unserved(cell: JudgedProgram) -> dict[str, int]:
    """`scope kind@axes` of each row of the contract that is not served as a whole -> bytes."""
    assert cell.judgement is not None
    left = zip(cell.contract, cell.judgement.served_bytes, strict=True)
    return {
        f"{row.scope} {row.kind}@{row.axes}": row.step_wire_bytes - served
        for row, served in left
        if served < row.step_wire_bytes
    }
