"""Read a run folder: the case, and the result of each program.  Needs no framework."""

import hashlib
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compare.hlo.text.files import decompress, read_bytes
from compare.passes import archive
from compare.report.build import build_report
from compare.report.model.about import About
from compare.report.model.report import Report
from compare.report.programs import DAMAGED, GOOD, MISSING, REFUSED, JudgedProgram, Key, ProgramResult, judge_programs
from compare.report.witnesses import WITNESSES
from compare.run.arms import ARMS, MEASURED
from compare.run.errors import WorkError
from compare.run.folder.replace_folder import CASE, PROGRAMS, is_cell
from compare.run.folder.untrusted_paths import is_inside, is_name, list_cells
from meshes.case import Case
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import one_line

if TYPE_CHECKING:
    from compare.run.folder.timelines import Timelines  # with pandas and the schedule model, for those who ask


@dataclass(frozen=True, slots=True)
class Run:
    """The contents of a run folder."""

    folder: Path
    case: Case
    results: tuple[ProgramResult, ...]

    @property
    def titles(self) -> dict[str, str]:
        """Arm -> its name, in the order of the table of arms."""
        names = {result.arm for result in self.results}
        known = {name: arm.title for name, arm in ARMS.items() if name in names}
        return known | {name: name for name in sorted(names - set(known))}

    def select(self, words: Sequence[str]) -> tuple[ProgramResult, ...]:
        """The programs that have these words, also those that failed.  words: arm, phase, cell; "" for any."""
        return tuple(
            result
            for result in self.results
            if all(word in ("", part) for word, part in zip(words, result.key, strict=True))
        )

    def without_passes(self) -> "Run":
        """For those who do not say what the compiler did to a collective: to trace that takes longer than to judge."""
        return replace(self, results=tuple(replace(result, passes=None) for result in self.results))


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run with its judged programs."""

    run: Run
    programs: tuple[JudgedProgram, ...]

    def of_phase(self, phase: str) -> "JudgedRun":
        """The same with the programs of one phase alone."""
        return replace(self, programs=tuple(program for program in self.programs if program.result.phase == phase))

    def timelines(self, *, chip: Path | None = None) -> "Timelines":
        """The modelled timeline of every compiled program, and the measured one of every executed program.

        chip: a user's file instead of the folder's.
        """
        from compare.run.folder.timelines import build_timelines

        return build_timelines(self.programs, folder=self.run.folder, chip=chip)

    def find(self, arm: str, phase: str, cell: str) -> JudgedProgram | None:
        """The program, if it was read."""
        key = arm, phase, cell
        return next((each for each in self.programs if each.result.key == key and each.module is not None), None)

    def report(self) -> Report:
        """The report without times."""
        return build_report(self.run.case, self.programs, titles=self.run.titles)


def judge_run(run: Run) -> JudgedRun:
    """Read and judge every program; one that is not understood becomes `damaged`, the others are unaffected."""
    return JudgedRun(run, tuple(judge_programs(run.case, run.results)))


def is_judged(report: Report) -> bool:
    """Whether any program was judged."""
    return any(row.wire_bytes is not None for phase in report.phases.values() for row in phase.headline)


def is_complete(report: Report, *, may_refuse: Collection[str] = ()) -> bool:
    """Whether every available program was compiled and judged, and every executed one has times.

    may_refuse: cells whose program may be refused.
    """
    rows = [row for phase in report.phases.values() for row in phase.headline]
    arms = [programs for phase in report.phases.values() for programs in phase.arms.values()]
    profiles = [program for programs in arms for program in programs.profiles.values()]
    good = (row.status in GOOD or (row.status == REFUSED and row.cell in may_refuse) for row in rows)
    return all(good) and all(program.timing for program in profiles)


def read_run(folder: Path) -> Run:
    """Read a run folder.  A damaged cell counts as failed; raises `WorkError` where there is no run."""
    case, case_json = _read_case(folder)
    cells = [path for path in list_cells(folder) if path.parts[-2] in case.phases]
    if not cells:
        raise WorkError(f"{folder} holds no program; a run folder has <arm>/<phase>/<cell>/about.json")
    results = [_cell(path, case=case, run=folder) for path in cells]
    keys = {result.key for result in results}
    results += [_missing(key, case=case) for key in _requested_programs(case_json, keys, case) - keys]
    results.sort(key=lambda result: result.key)
    return Run(folder, case, tuple(results))


def read_case(folder: Path) -> Case:
    """The case of a run folder.  `WorkError` where there is none."""
    return _read_case(folder)[0]


def _read_case(folder: Path) -> tuple[Case, Mapping[str, object]]:
    """The case, and all that its file says."""
    if not is_inside(folder, folder / CASE):
        raise WorkError(f"{folder} is not a run folder: {_why_not(folder)}")
    try:
        case_json = read_json(folder / CASE)
        return Case.from_dict(case_json), case_json
    except (OSError, MeshError) as error:
        raise WorkError(f"{folder / CASE} cannot be read: {error}") from None


def _why_not(folder: Path) -> str:
    if is_cell(folder):
        return f"it is one program of the run {folder.resolve().parents[2]}"
    path = folder / CASE
    if not path.exists():
        return f"{CASE}: No such file or directory"
    return f"{CASE}: it leads out of the folder" if path.is_file() else f"{CASE}: it is no file"


def _requested_programs(case_json: Mapping[str, object], present: Collection[Key], case: Case) -> set[Key]:
    """The programs that a run requested, from its case.json; in runs of earlier versions, every compiled cell in every
    phase."""
    listed = case_json.get(PROGRAMS)
    if not isinstance(listed, list):
        return {(arm, phase, cell) for arm, _, cell in present if cell not in MEASURED for phase in case.phases}
    keys = [tuple(word.split("/")) for word in listed if isinstance(word, str)]
    return {
        (key[0], key[1], key[2]) for key in keys if len(key) == 3 and all(map(is_name, key)) and key[1] in case.phases
    }


def _missing(key: Key, *, case: Case) -> ProgramResult:
    arm, phase, cell = key
    return ProgramResult(
        arm=arm,
        phase=phase,
        cell=cell,
        status=MISSING,
        error="it was made, and is not in the run folder",
        executed=_executed(cell, case),
        witness=cell in WITNESSES,
    )


def _executed(cell: str, case: Case) -> Case | None:
    """The case of an executed cell; `None` for a compiled one."""
    return MEASURED[cell].case_of(case) if cell in MEASURED else None


def _cell(folder: Path, *, case: Case, run: Path) -> ProgramResult:
    arm, phase, cell = folder.parts[-3:]
    hlo = recorded = None
    executed = _executed(cell, case)
    file = folder / "about.json"
    try:
        about = About.from_json(read_json(file))
        if about.status is None:
            raise ValueError("it says no status")
        executed, error = about.case or executed, one_line(about.error or "") or None
        if about.status == "ok":
            file = folder / "optimized.hlo.gz"
            hlo = _text(file, about.hlo_digest, run=run)
            recorded = _passes(folder / archive.FILE, about.passes_digest, run=run)
    except (OSError, EOFError, ValueError, zlib.error) as problem:
        why = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        error = one_line(f"{'/'.join(file.parts[-4:])} cannot be read again: {why}")
        return ProgramResult(
            arm=arm, phase=phase, cell=cell, status=DAMAGED, error=error, executed=executed, witness=cell in WITNESSES
        )
    return ProgramResult(
        arm=arm,
        phase=phase,
        cell=cell,
        status=about.status,
        error=error,
        about=about,
        hlo=hlo,
        executed=executed,
        passes=recorded,
        witness=cell in WITNESSES,
    )


def _passes(path: Path, digest: str | None, *, run: Path) -> bytes | None:
    """The archive of recorded passes; empty where its digest differs, `None` where there is none."""
    if not is_inside(run, path):
        return b"" if digest else None
    packed = read_bytes(path)
    return packed if not digest or hashlib.sha256(packed).hexdigest() == digest else b""


def _text(path: Path, digest: str | None, *, run: Path) -> str:
    if path.exists() and not is_inside(run, path):
        raise ValueError(_why_not(path))
    packed = read_bytes(path)
    if digest and hashlib.sha256(packed).hexdigest() != digest:
        raise ValueError("it is not the file whose digest about.json has")
    return decompress(packed).decode()
