"""Tables as views of DuckDB, over all runs, with each run's case beside every row."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from compare.query.errors import QueryError
from compare.query.named_queries import list_queries, read_query
from compare.query.runs import CASE_COLUMNS, RUN_COLUMNS, RunFolder, table_names
from compare.query.sources import FILE, file_name, identifier, null_columns, parquet_select, report_select
from compare.query.tables import TABLES, DerivedTable, ReportTable, Table
from compare.run.folder.untrusted_paths import is_inside

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_REPORT = "report.json"

_CATALOGS = ("information_schema", "duckdb_", "pg_", "pragma_", "sqlite_")
"""What DuckDB's own lists of tables begin with."""

Files = Mapping[str, Mapping[Path, RunFolder]]
"""By table the files that a query reads, and whose they are; none of a table that it does not mention."""


def files_to_read(runs: Sequence[RunFolder], sql: str) -> Files:
    """Of every table that there is.  Raises `QueryError` where a run lacks its report.json."""
    names = [name for name in dict.fromkeys([*TABLES, *table_names(runs)]) if name != "runs"]
    made, read = selects(), tables_read(names, sql)
    return {
        name: {file: run for run in runs if name in read and (file := _file(run, name))}
        for name in names
        if name not in made
    }


def tables_read(names: Collection[str], sql: str) -> set[str]:
    """Which of these tables a query reads, itself or through what is made of others; perhaps some more."""
    made = selects()
    read = _mentioned([*names, *made], sql)
    for name in reversed([*made]):  # what reads others comes after them
        read |= _mentioned([*names, *made], made[name]) if name in read else set()
    return read


@cache
def selects() -> Mapping[str, str]:
    """What is made of other tables, by name, each by a SELECT: the derived tables, and the queries that ship.

    None stands before one that it reads.
    """
    made = {name: table.sql for name, table in TABLES.items() if isinstance(table, DerivedTable)}
    made |= {name: read_query(name) for name in list_queries()}
    order = TopologicalSorter({name: _mentioned(made, sql) - {name} for name, sql in made.items()})
    return {name: made[name] for name in order.static_order()}


def selects_needed(tables: Collection[str], sql: str) -> Mapping[str, str]:
    """Of what is made of these tables, what the query reads: each view takes DuckDB milliseconds.

    All of it where the query may list tables, or reads none that we know: DuckDB says then which name is like it.
    """
    made, read = selects(), tables_read(tables, sql)
    if not read or any(word in sql.lower() for word in _CATALOGS):
        return made
    return {name: select for name, select in made.items() if name in read}


def create_views(connection: "DuckDBPyConnection", runs: Sequence[RunFolder], files: Files, sql: str) -> None:
    """A view for each table that the query could read, and the table `runs`.

    Raises DuckDB's own error where a file is damaged.
    """
    values = [[run.facts[name] for run in runs] for name in RUN_COLUMNS]
    columns = ", ".join(f"unnest(?::{kind}[]) AS {identifier(name)}" for name, kind in RUN_COLUMNS.items())
    connection.execute(f"CREATE TABLE runs AS SELECT {columns}", values)
    connection.execute("CREATE SCHEMA internal")
    for name, own_files in files.items():
        connection.execute(f"CREATE VIEW {identifier(name)} AS {_select(connection, name, own_files)}")
    for name, select in selects_needed({*files, "runs"}, sql).items():
        table = TABLES.get(name)
        rows = f"({select}) AS own JOIN runs USING (run)"
        view = _with_case(table.columns, rows) if table else select
        connection.execute(f"CREATE VIEW {identifier(name)} AS {view}")


def _mentioned(names: Collection[str], sql: str) -> set[str]:
    """Perhaps more than it reads: a word of a text is one too; but not of the line at its head that says what it is."""
    text = re.sub(r"\A(\s*--[^\n]*\n)+", "", sql)
    return {name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?!\w|-\w)", text, re.IGNORECASE)}


def _file(run: RunFolder, name: str) -> Path | None:
    table = TABLES.get(name)
    if not isinstance(table, ReportTable):
        return run.table(name)
    path = run.folder / _REPORT
    if not is_inside(run.folder, path) or not path.stat().st_size:
        raise QueryError(f"{path} is not there, or empty; python -m compare.report {run.folder} makes it")
    return path


def _select(connection: "DuckDBPyConnection", name: str, files: Mapping[Path, RunFolder]) -> str:
    """The rows of one table, with the case of the run that each is of."""
    table = TABLES.get(name, Table(says="", columns={}))
    if not files:
        return f"SELECT {null_columns({**CASE_COLUMNS, **table.columns})} WHERE false"
    if isinstance(table, ReportTable):
        select, own = report_select(table, list(files)), list(table.columns)
    else:
        select, own = parquet_select(connection, table.columns, list(files))
    # The case of each file: one join a row, whatever the table.
    cases = f"internal.{identifier(name)}"
    connection.execute(
        f"CREATE TABLE {cases} AS SELECT {FILE}, runs.* FROM runs "
        f"JOIN (SELECT unnest(?::VARCHAR[]) AS {FILE}, unnest(?::VARCHAR[]) AS run) USING (run)",
        [[file_name(file) for file in files], [run.facts["run"] for run in files.values()]],
    )
    return _with_case(own, f"({select}) AS own JOIN {cases} AS runs USING ({FILE})")


def _with_case(own: Collection[str], rows: str) -> str:
    """What a table says itself of a word of the case (the style of a program) is not that of its run's."""
    case = [f"runs.{identifier(name)}" for name in CASE_COLUMNS if name not in own]
    columns = [f"own.{identifier(name)}" for name in own]
    return f"SELECT {', '.join([*case, *columns])} FROM {rows}"
