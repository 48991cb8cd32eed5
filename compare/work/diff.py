"""What is to be held against what: two programs, or two run folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compare.judge.cells import Judged
from compare.judge.diff_report import Key, diff_report, run_report
from compare.judge.matching import matched
from compare.judge.summary import summarize
from compare.work.error import WorkError
from compare.work.folder import CASE
from compare.work.own import given, tables
from compare.work.reading import Run, read_run


def are_runs(a: Path, b: Path) -> bool:
    """Whether both are run folders.  Raises `WorkError` where one is and the other is a file, or neither is either."""
    folders = [path.is_dir() for path in (a, b)]
    if any(folders) and not all(folders):
        one, other = (a, b) if folders[0] else (b, a)
        raise WorkError(f"{one} is a folder and {other} is not; name two programs, or two run folders")
    for path in (a, b) if all(folders) else ():
        if not (path / CASE).is_file():
            raise WorkError(f"{path} is not a run folder (no {CASE} in it); name two programs, or two run folders")
    return all(folders)


def of_programs(a: str, b: str, *, axes: Mapping[str, int], topology: str = "") -> dict[str, Any]:
    """The diff of two files, compiled first where they are not."""
    rows = tables([given(a), given(b)], axes=axes, topology=topology)
    return diff_report(matched(*rows), names=(a, b), axes=axes)


def of_runs(a: Path, b: Path) -> dict[str, Any]:
    """The diff of two run folders, both judged anew, by the same rules."""
    runs = read_run(a), read_run(b)
    return run_report((_cells(runs[0]), _cells(runs[1])), (_report(runs[0]), _report(runs[1])), names=(str(a), str(b)))


def _cells(run: Run) -> dict[Key, Judged]:
    return {cell.result.key: cell for cell in run.cells}


def _report(run: Run) -> dict[str, Any]:
    return summarize(run.case, run.cells, titles=run.titles)
