"""Where an answer, or saved tables, may be written."""

from pathlib import Path

from compare.query.errors import QueryError
from compare.query.saved import RUNS, SavedTables, Source


def check_save(folder: Path, runs: Source) -> None:
    """Saved tables are written into an empty folder, or over saved tables."""
    if isinstance(runs, SavedTables):
        raise QueryError(f"{runs.folder} holds saved tables already; they are saved from run folders")
    if folder.exists() and not (folder / RUNS).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise QueryError(f"{folder} holds something else; choose an empty folder, or one of saved tables")
    _check_outside(folder, runs)


def check_out(out: Path, runs: Source) -> None:
    """A query writes nothing into the runs that it reads."""
    if not out.parent.is_dir():
        raise QueryError(f"{out} cannot be written: there is no folder {out.parent}")
    _check_outside(out, runs)


def _check_outside(path: Path, runs: Source) -> None:
    for run in [runs] if isinstance(runs, SavedTables) else runs:
        if path.resolve().is_relative_to(run.folder.resolve()):
            raise QueryError(f"{path} is in the folder {run.folder}, which is only read; choose another")
