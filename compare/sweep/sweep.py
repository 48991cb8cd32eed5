"""A sweep: many cases, several at a time, each into its own run folder; finished cases are not run again.

A kill loses only the running cases: a run folder is renamed into place when it is complete, and its mark is written
after that.  A mark identifies the case, arms, sources and versions of the run, and its report: changed sources or
versions, or another run in its place, invalidate it.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from filelock import FileLock, Timeout

from compare.report.model.report import Report
from compare.run import cache
from compare.run.arms import COMPILER, find_arm, read_versions
from compare.run.cache import file_digest, make_key, sources_digest
from compare.run.choices import DEFAULT_CONTROLS
from compare.run.errors import WorkError
from compare.run.folder import replace_folder, run_folder
from compare.run.folder.chip import name_chip
from compare.run.tasks import ROOT, lower_task
from compare.sweep.combination import Combination
from compare.sweep.engines.engines import Engine
from compare.sweep.engines.local import CaseOutcome, CaseTask, Notify
from compare.sweep.engines.worker import CaseRequest
from compare.sweep.summary import ResultRow
from compare.sweep.sweep_report import check_row, result_row
from meshes.case import Case
from meshes.process import atomic_files
from meshes.process.documents import read_json
from meshes.process.one_line import one_line

HIDDEN = ".sweep"
"""The folder inside a sweep's folder for its lock, its marks and unfinished runs."""

DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How the cases of a sweep are run, the same for all."""

    out: Path
    arms: Sequence[str]
    controls: Sequence[str] = DEFAULT_CONTROLS
    """Further programs of each case: words of `arms.CONTROLS`."""
    witnesses: Sequence[str] = ()
    """Other people's programs for each case: names in `WITNESSES`.  One that refuses a case does not fail it."""
    engine: Engine
    at_once: int | None
    timeout_s: float
    no_cache: bool = False
    """Recompile everything, finished cases too, and write nothing to the cache."""
    pages: bool = True
    """Draw the page and the figures of each case."""
    chip: Path | None = None
    """A user's file of the chips of every case."""

    def place(self, case: Case) -> Path:
        return run_folder.folder_of(case, parent=self.out, arms=self.arms)


@dataclass(frozen=True, slots=True)
class CaseEnd:
    """How a case ended: `done`, `failed` where a program of it did, or how its process did."""

    status: str
    error: str = ""
    at: Path | None = None
    """Its run folder, where there is one."""


def name_sweep(combinations: Sequence[Combination], *, arms: Sequence[str]) -> str:
    """The name of a sweep's folder: two sweeps share it only if they have the same cases."""
    cases = [combination.case for combination in combinations if combination.case]
    models = list(dict.fromkeys(case.model.name for case in cases))
    whose = models[0] if len(models) == 1 else f"{len(models)}-models"
    digest = make_key([sorted(case.name for case in cases), list(arms)])[:8]
    return f"{whose}-{len(cases)}-case{'s' * (len(cases) != 1)}-{digest}"


def run(combinations: Sequence[Combination], work: Work, *, notify: Notify) -> list[ResultRow]:
    """Run every unfinished case, and return a row for each combination, in their order.

    Raises `WorkError` where another sweep is at work in the same folder.
    """
    with _alone_in(work.out) as hidden:
        cases = {
            work.place(combination.case).name: combination.case for combination in combinations if combination.case
        }
        keys = {
            name: digest_inputs(case, work.arms, controls=work.controls, witnesses=work.witnesses, chip=work.chip)
            for name, case in cases.items()
        }
        ended: dict[str, CaseEnd] = {}
        for name in cases:
            notify(name, "waiting", 0)
        for name in cases:
            mark, place = _mark(hidden, name), work.out / name
            if not work.no_cache and is_done(mark, place, by=keys[name], pages=work.pages):
                ended[name] = CaseEnd(DONE, at=place)
                notify(name, "already done", 0)
        tasks = [CaseTask(name=name, request=_request(case, work)) for name, case in cases.items() if name not in ended]
        with closing(work.engine(tasks, at_once=work.at_once, scratch=hidden / "begun", notify=notify)) as ending:
            for task, outcome in ending:
                mark, place = _mark(hidden, task.name), work.out / task.name
                ended[task.name] = _settle(outcome, place, mark, by=keys[task.name], pages=work.pages)
                notify(task.name, ended[task.name].status, outcome.seconds)
        return [
            read_result(combination, ended[work.place(combination.case).name] if combination.case else None)
            for combination in combinations
        ]


def _request(case: Case, work: Work) -> CaseRequest:
    return {
        "case": case.to_dict(),
        "arms": [*work.arms],
        "controls": [*work.controls],
        "witnesses": [*work.witnesses],
        "timeout_s": work.timeout_s,
        "no_cache": work.no_cache,
        "before": str(work.place(case).absolute()),
        "pages": work.pages,
        "chip": name_chip(work.chip, case.topology.generation) if work.chip else None,
    }


def _settle(outcome: CaseOutcome, place: Path, mark: Path, *, by: str, pages: bool) -> CaseEnd:
    """Move a run folder into its place, and mark it as done if it is complete."""
    if outcome.run is None:
        return CaseEnd(outcome.status, outcome.error)
    try:
        with replace_folder.open_replacement(place) as beside:
            for each in outcome.run.iterdir():
                each.rename(beside / each.name)
            run_folder.carry_measured(place, beside)
            at, note = run_folder.put_in_place(beside, place, judged=outcome.judged)
    except WorkError as error:
        return CaseEnd("failed", str(error))
    if not outcome.complete:
        return CaseEnd("failed", " ".join(note), at)
    mark_done(mark, place, by=by, pages=pages)
    return CaseEnd(DONE, at=at)


def read_result(combination: Combination, ended: CaseEnd | None) -> ResultRow:
    """The row of one combination, from the report in its run folder; `refused` if it has no case."""
    if ended is None:
        return result_row(combination, status="refused", error=combination.refused)
    folder = ended.at.name if ended.at else None
    try:
        report = Report.from_json(read_json(ended.at / REPORT)) if ended.at else None
        row = result_row(combination, status=ended.status, error=ended.error, folder=folder, report=report)
        check_row(row)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = f"{REPORT} cannot be read again: {one_line(error, most=200)}"
        return result_row(combination, status="failed", error=why, folder=folder)
    return row


def _mark(hidden: Path, name: str) -> Path:
    return hidden / "done" / f"{name}.json"


@contextmanager
def _alone_in(out: Path) -> Iterator[Path]:
    """The hidden folder of a sweep, locked; the unfinished runs of a killed sweep are removed."""
    replace_folder.refuse_file(out)
    hidden = out / HIDDEN
    hidden.mkdir(parents=True, exist_ok=True)
    lock = FileLock(hidden / "lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise WorkError(f"another sweep is running in {out}; wait for it, or choose another --out") from None
    try:
        shutil.rmtree(hidden / "begun", ignore_errors=True)
        yield hidden
    finally:
        shutil.rmtree(hidden / "begun", ignore_errors=True)
        cache.remove_leftovers()  # of cases killed with the sweep
        lock.release()


REPORT, PAGE = "report.json", "report.html"


def digest_inputs(
    case: Case,
    arms: Sequence[str],
    *,
    controls: Sequence[str] = DEFAULT_CONTROLS,
    witnesses: Sequence[str] = (),
    chip: Path | None = None,
) -> str:
    """A digest of all inputs of a run: case, arms, controls, witnesses, chip file, sources, versions, environment."""
    programs = [
        [cell.name, lower_task(cell.case_of(step), arm, lowering=cell.lowering).key]
        for arm in map(find_arm, arms)
        for step in (case.at(phases=(phase,)) for phase in case.phases)
        for cell in arm.cells(step, controls=controls, witnesses=witnesses)
    ]
    compiler = read_versions(COMPILER)
    of_chip = {"chip": name_chip(chip, case.topology.generation)} if chip else {}
    return make_key(
        {"case": case.to_dict(), "programs": programs, "compiler": compiler, "sources": _sources(), **of_chip}
    )


def is_done(mark: Path, place: Path, *, by: str, pages: bool) -> bool:
    """Whether the mark exists, has the same inputs, and is for the report in the run folder, drawn if pages are."""
    try:
        marked = read_json(mark)
        is_drawn = bool(marked.get("pages", True)) or (place / PAGE).is_file()
        return bool(marked["by"] == by and marked["report"] == file_digest(place / REPORT) and (is_drawn or not pages))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def mark_done(mark: Path, place: Path, *, by: str, pages: bool) -> None:
    """Mark a run folder as done, with its page or without."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    words = {"by": by, "report": file_digest(place / REPORT), "pages": pages}
    atomic_files.write_text(mark, json.dumps(words, indent=1))


@once
def _sources() -> str:
    return sources_digest(ROOT / "compare")
