"""What the files of one table hold, as a SELECT: the table's own columns, and the file that each row is of."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from compare.query.tables import Columns, ReportTable
from compare.report.model.report import SCHEMA
from meshes.process.documents import JSON_BYTES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PROTOCOL = "runs://"
"""What stands before the path of a table's file: DuckDB reads it through a file system that writes nothing."""

FILE = "wirediff_file"
"""The column that DuckDB adds, which says of which file a row is."""

_OTHERS = ("controls", "profiles", "witnesses")
"""Keys of an arm in report.json that hold programs beside its default one."""


def identifier(name: str) -> str:
    """A name as SQL writes it, whatever letters are in it."""
    return '"' + name.replace('"', '""') + '"'


def null_columns(columns: Columns) -> str:
    """Columns that are there by their names and types alone."""
    return ", ".join(f"NULL::{kind} AS {identifier(name)}" for name, kind in columns.items())


def parquet_select(connection: "DuckDBPyConnection", columns: Columns, files: Sequence[Path]) -> tuple[str, list[str]]:
    """The SELECT of Parquet files, and its columns; those that only later versions write are null."""
    scan = f"read_parquet([{', '.join(map(_literal, files))}], union_by_name = true, filename = '{FILE}')"
    select, names = add_absent(connection, columns, scan)
    return select, [name for name in names if name != FILE]


def add_absent(connection: "DuckDBPyConnection", columns: Columns, scan: str) -> tuple[str, list[str]]:
    """The SELECT of a table of DuckDB with those of these columns that it has not, null; and its columns."""
    there = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
    absent = {name: kind for name, kind in columns.items() if name not in there}
    return f"SELECT {', '.join(filter(None, ['*', null_columns(absent)]))} FROM {scan}", [*there, *absent]


def report_select(table: ReportTable, files: Sequence[Path]) -> str:
    """The SELECT of a part of each report.json, from its programs or its phases."""
    parts = [f"{identifier(name)} {table.columns[column]}" for column, name in table.fields.items()]
    record = f"STRUCT({', '.join(parts)})"
    kind = {"list": f"{record}[]", "map": f"MAP(VARCHAR, {record})", "record": record}[table.shape]
    of_program = table.path[0] == "timing"
    part = _inside(table.path[1:], kind, more="source VARCHAR, ") if of_program else kind
    phases = _programs_type(f"timing {part}") if of_program else f"STRUCT({table.path[0]} {part})"
    read = (
        f"read_json([{', '.join(map(_literal, files))}], "
        f"columns = {{schema: 'BIGINT', phases: 'MAP(VARCHAR, {phases})'}}, "
        f"format = 'unstructured', filename = '{FILE}', maximum_object_size = {JSON_BYTES})"
    )
    places = f"SELECT {FILE}, {_CHECK.format(file=FILE, schema=SCHEMA)} AS phases FROM {read}"
    entries = {"list": "{0}", "map": "map_entries({0})", "record": "[{0}]"}[table.shape]
    value = "entry.value" if table.shape == "map" else "entry"
    own = "".join(f", {value}.{identifier(name)} AS {identifier(column)}" for column, name in table.fields.items())
    if not of_program:
        return (
            f"SELECT {FILE}, place.key AS phase{own} FROM ({places}), unnest(map_entries(phases)) AS _(place), "
            f"unnest(place.value.{table.path[0]}) AS _(entry)"
        )
    at = f"program.timing.{'.'.join(table.path[1:])}"
    key = ", entry.key AS axes" if table.shape == "map" else ""
    return (
        f"SELECT {FILE}, phase, arm, program.cell AS cell, is_default, program.timing.source AS source{key}{own} "
        f"FROM ({_programs(places)}), unnest({entries.format(at)}) AS _(entry) WHERE {at} IS NOT NULL"
    )


_CHECK = (
    "CASE WHEN schema IS NULL OR phases IS NULL THEN error({file} || ' is no report of wirediff') "
    "WHEN schema > {schema} THEN error({file} || ' is of a later version of wirediff') ELSE phases END"
)


def _inside(path: Sequence[str], kind: str, *, more: str = "") -> str:
    return f"STRUCT({more}{path[0]} {_inside(path[1:], kind)})" if path else kind


def _programs_type(timing: str) -> str:
    program = f"STRUCT(cell VARCHAR, {timing})"
    others = "".join(f", {name} MAP(VARCHAR, {program})" for name in _OTHERS)
    return f"STRUCT(arms MAP(VARCHAR, STRUCT(cell VARCHAR, {timing}{others})))"


def _programs(places: str) -> str:
    """A row for each program: that of an arm itself, and those of the maps beside it."""
    arms = (
        f"SELECT {FILE}, place.key AS phase, entry.key AS arm, entry.value AS value FROM ({places}), "
        f"unnest(map_entries(phases)) AS _(place), unnest(map_entries(place.value.arms)) AS _(entry)"
    )
    others = " || ".join(f"coalesce(map_values(value.{name}), [])" for name in _OTHERS)
    return (
        f"WITH arms AS ({arms}) SELECT {FILE}, phase, arm, true AS is_default, "
        f"{{'cell': value.cell, 'timing': value.timing}} AS program FROM arms "
        f"UNION ALL SELECT {FILE}, phase, arm, false, other FROM arms, unnest({others}) AS _(other)"
    )


def scan_file(file: Path) -> str:
    """One file alone, as a table of DuckDB."""
    if file.suffix == ".json":
        return f"read_json({_literal(file)}, format = 'unstructured', maximum_object_size = {JSON_BYTES})"
    return f"read_parquet({_literal(file)})"


def file_name(path: Path) -> str:
    """A file as DuckDB knows it; brackets, stars and quotes of a folder's name stand in percents."""
    return PROTOCOL + quote(str(path))


def plain_paths(words: str) -> str:
    """A message of DuckDB with the paths themselves."""
    return re.sub(rf"{PROTOCOL}([\w/.%~-]*)", lambda name: unquote(name[1]), words, flags=re.ASCII)


def _literal(path: Path) -> str:
    return f"'{file_name(path)}'"
