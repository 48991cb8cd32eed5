"""Saved tables: those of many runs, written once as one Parquet file a table, each row with its run's case.

A folder of them answers as the run folders did, and is a hundredth of their size: it ships where those cannot.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compare.query.errors import QueryError
from compare.query.runs import CASE_COLUMNS, RUN_COLUMNS, RunFolder, read_runs
from compare.query.sources import add_absent, identifier, null_columns, scan_file
from compare.query.tables import TABLES
from compare.query.views import selects_needed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RUNS = "runs.parquet"
"""What a folder must hold to be taken for one of saved tables."""

_SUFFIX = ".parquet"

LEFT_OUT = ("events", "steps", "ticks", "device_times", "stragglers")
"""Single events, steps and devices, nearly all of the bytes: they stay in the run folders."""

_SELECTS = {
    "collectives": "SELECT * EXCLUDE (hlo, groups_json, changes_json) FROM collectives",
    # A window of each device and step, as often as it was the same.
    "windows": "SELECT * EXCLUDE (device, step, stands_for), NULL::INTEGER AS device, NULL::INTEGER AS step, "
    "sum(stands_for)::BIGINT AS stands_for FROM windows GROUP BY ALL",
    "runs": "SELECT * EXCLUDE (folder), NULL::VARCHAR AS folder FROM runs",
}
"""Of tables that are not saved as they are."""


@dataclass(frozen=True, slots=True)
class SavedTables:
    """A folder of saved tables."""

    folder: Path

    def files(self) -> dict[str, Path]:
        """Table -> its file."""
        return {path.stem: path for path in sorted(self.folder.glob(f"*{_SUFFIX}"))}


Source = Sequence[RunFolder] | SavedTables


def read_source(folders: Sequence[Path]) -> Source:
    """Run folders, or one folder of saved tables.  Raises `QueryError`, one line, where it is neither."""
    saved = [folder for folder in folders if (folder / RUNS).is_file()]
    if not saved:
        return read_runs(folders)
    if len(folders) > 1:
        raise QueryError(f"{saved[0]} holds saved tables; they are asked alone, without other folders")
    return SavedTables(saved[0])


def saved_selects(names: Collection[str]) -> dict[str, str]:
    """Table -> what is saved of it."""
    return {name: _SELECTS.get(name, f"SELECT * FROM {identifier(name)}") for name in names}


def tables_to_save() -> list[str]:
    """All that ship and are not left out."""
    return [name for name in TABLES if name not in LEFT_OUT]


def create_saved_views(connection: "DuckDBPyConnection", saved: SavedTables, sql: str) -> None:
    """A view for each saved table and each query that ships and is read; a table that was not saved has no rows."""
    files = saved.files()
    for name, path in files.items():
        known = RUN_COLUMNS if name == "runs" else {**CASE_COLUMNS, **TABLES[name].columns} if name in TABLES else {}
        select, _ = add_absent(connection, known, scan_file(path))
        connection.execute(f"CREATE VIEW {identifier(name)} AS {select}")
    for name in TABLES:
        if name not in files:
            nulls = null_columns({**CASE_COLUMNS, **TABLES[name].columns})
            connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT {nulls} WHERE false")
    for name, select in selects_needed({*files, *TABLES}, sql).items():
        if name not in TABLES:
            connection.execute(f"CREATE VIEW {identifier(name)} AS {select}")


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
