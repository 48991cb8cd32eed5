"""Answers as text: a table that fits the terminal, JSON, CSV; and the list of what can be asked."""

import csv
import json
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING

from compare.query.errors import QueryError
from compare.query.named_queries import list_queries
from compare.query.runs import CASE_COLUMNS, table_names
from compare.query.saved import SavedTables, Source
from compare.query.sources import identifier
from compare.query.tables import TABLES, unit_of
from compare.render.units import UNKNOWN, bytes_text, count_text, time_text
from compare.report.grouping import group_by
from meshes.process.command_line import print_json
from meshes.process.one_line import plain

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Row = tuple[object, ...]

MOST_ROWS = 100
"""Of a table on a terminal."""

MOST_JSON_ROWS = 1_000_000
"""Of one list, which is held in memory."""
_TIME = re.compile(r"\b(DATE|TIME)")
"""In the name of a type, of a nested one too."""
_GAP = "  "
_WIDTH = 100
"""Columns where standard output is no terminal, and COLUMNS says nothing."""

_LONGEST = 60
"""Characters of a value in a table."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What moves a terminal's cursor or changes its colours; tabs and ends of lines stay."""

_UNDESCRIBED = "of another version; DESCRIBE shows its columns"


def print_rows(connection: "DuckDBPyConnection", sql: str) -> None:
    """At most `MOST_ROWS` rows, as wide as the terminal."""
    cursor, columns = _ask(connection, sql)
    rows = list(islice(_rows(cursor), MOST_ROWS + 1))
    for line in table_lines(columns, rows[:MOST_ROWS], width=shutil.get_terminal_size((_WIDTH, 0)).columns):
        print(line)
    if len(rows) > MOST_ROWS:
        print(f"The first {MOST_ROWS} rows; --csv, --json and --out FILE have all.")


def print_json_rows(connection: "DuckDBPyConnection", sql: str) -> None:
    """All rows as one list of objects, held in memory; what JSON has no word for (not a number) is null."""
    cursor, columns = _ask(connection, sql)
    if twice := [name for name, times in Counter(columns).items() if times > 1]:
        raise QueryError(f"two columns are named {twice[0]}; an object has each name once: write … AS another")
    rows = list(islice(_rows(cursor), MOST_JSON_ROWS + 1))
    if len(rows) > MOST_JSON_ROWS:
        raise QueryError(f"more than {MOST_JSON_ROWS:,} rows for one JSON list; --csv and --out FILE write any number")
    print_json([dict(zip(columns, map(_plain_value, row), strict=True)) for row in rows])


def print_csv_rows(connection: "DuckDBPyConnection", sql: str) -> None:
    """All rows, as they come; lists and maps are JSON text."""
    cursor, columns = _ask(connection, sql)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(map(_csv_value, columns))
    out.writerows(map(_csv_value, row) for row in _rows(cursor))


def _ask(connection: "DuckDBPyConnection", sql: str) -> tuple["DuckDBPyConnection", list[str]]:
    """The rows to come, and the names of their columns."""
    cursor = connection.execute(_spell_times(connection, sql))
    return cursor, [name for name, *_ in cursor.description or ()]


def _spell_times(connection: "DuckDBPyConnection", sql: str) -> str:
    """The same query, with dates and times as DuckDB's words: Python's have no infinity and no nanoseconds."""
    import duckdb

    answer = connection.sql(sql)
    timed = [_TIME.search(str(kind)) is not None for kind in answer.types]
    if not any(timed):
        return sql
    letters = sql.encode()
    end = next((at for at, _ in duckdb.tokenize(sql) if letters[at : at + 1] == b";"), len(letters))
    inner = ", ".join(f"a{number}" for number in range(len(timed)))
    columns = ", ".join(
        f"a{number}{'::VARCHAR' if is_timed else ''} AS {identifier(name)}"
        for number, (is_timed, name) in enumerate(zip(timed, answer.columns, strict=True))
    )
    return f"SELECT {columns} FROM ({letters[:end].decode()}\n) AS answer({inner})"


def _rows(cursor: "DuckDBPyConnection") -> Iterator[Row]:
    while rows := cursor.fetchmany(1024):
        yield from rows


def _plain_value(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(inner) for inner in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _csv_value(value: object) -> object:
    found = _plain_value(value)
    if isinstance(found, dict | list):
        found = json.dumps(found, ensure_ascii=False)
    if isinstance(found, str):  # a terminal may show it; a CSV of --out has every character
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", found)
    return str(found).lower() if isinstance(found, bool) else found


def table_lines(columns: Sequence[str], rows: Sequence[Row], *, width: int) -> Iterator[str]:
    """Rows as lines of at most `width` characters, where that can be.

    Too wide: what is the same in all rows stands before them, once; still too wide: several tables, one below the
    other, each with the columns of words; of a single row, or where those have no room: a line for each value.
    """
    cells = [[_cell(name, value) for name, value in zip(columns, row, strict=True)] for row in rows]
    every = [
        _Column(plain(name), [row[at] for row in cells], all(_is_number(row[at]) for row in rows))
        for at, name in enumerate(columns)
    ]
    if len(rows) > 1 and _wide(every) > width:
        same = [column for column in every if len(set(column.cells)) == 1]
        words = ", ".join(f"{column.name} {column.cells[0]}" for column in same)
        yield from textwrap.wrap(f"In all rows: {words}", width, subsequent_indent=_GAP) if same else ()
        every = [column for column in every if column not in same]
    bands = [every] if _wide(every) <= width else list(_bands(every, width=width)) if len(rows) > 1 else []
    for number, band in enumerate(bands):
        yield from [""] * (number > 0)
        yield from _table(band)
    if not bands:
        name_width = max(len(column.name) for column in every)
        for at in range(len(rows)):
            yield "─" * width
            yield from (f"{column.name:<{name_width}}{_GAP}{column.cells[at]}" for column in every)


def _is_number(value: object) -> bool:
    """Or unknown."""
    return isinstance(value, int | float | Decimal | None) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    cells: list[str]
    is_number: bool

    @property
    def size(self) -> int:
        """Its longest value, or the longest part of its name, which may be broken behind a `_`."""
        return max(map(len, [*self.parts, *self.cells]))

    @property
    def parts(self) -> list[str]:
        return self.name.replace("_", "_ ").split(" ")

    @property
    def heading(self) -> list[str]:
        """Its name in lines."""
        lines = [""]
        for part in self.parts:
            lines = [*lines[:-1], lines[-1] + part] if len(lines[-1] + part) <= self.size else [*lines, part]
        return lines


def _bands(columns: Sequence[_Column], *, width: int) -> Iterator[list[_Column]]:
    """The columns of numbers in as many tables as they need, each behind the columns of words; none without room."""
    words = [column for column in columns if not column.is_number]
    numbers = [column for column in columns if column.is_number]
    if not numbers or _wide([*words, max(numbers, key=lambda column: column.size)]) > width:
        return
    while numbers:
        most = max(n for n in range(1, len(numbers) + 1) if n == 1 or _wide([*words, *numbers[:n]]) <= width)
        yield [*words, *numbers[:most]]
        numbers = numbers[most:]


def _table(columns: Sequence[_Column]) -> Iterator[str]:
    def line(parts: Iterable[str]) -> str:
        return _GAP.join(
            f"{part:{'>' if column.is_number else '<'}{column.size}}"
            for column, part in zip(columns, parts, strict=True)
        ).rstrip()

    high = max(len(column.heading) for column in columns)
    headings = [[""] * (high - len(column.heading)) + column.heading for column in columns]
    yield from map(line, zip(*headings, strict=True))
    yield "─" * _wide(columns)
    yield from map(line, zip(*(column.cells for column in columns), strict=True))


def _wide(columns: Sequence[_Column]) -> int:
    return sum(column.size for column in columns) + len(_GAP) * (len(columns) - 1)


def _cell(name: str, value: object) -> str:
    """A value for readers: bytes and times with a unit, three digits of each; --csv and --json have every digit."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | Decimal):
        return _number(unit_of(name, ""), value if isinstance(value, int) else float(value))
    words = plain(value if isinstance(value, str) else json.dumps(_plain_value(value), ensure_ascii=False))
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def _number(unit: str, value: int | float) -> str:
    if not isfinite(value):
        return str(value)
    if unit in ("bytes", "bytes/s"):
        return bytes_text(value) + unit.removeprefix("bytes")
    if unit == "ns":
        return time_text(value)
    return f"{int(value):,}" if value == int(value) else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def describe_tables(runs: Source) -> dict[str, object]:
    """What can be asked: tables with their columns, types and units, and the queries that ship."""
    saved = runs if isinstance(runs, SavedTables) else None
    folders = [] if isinstance(runs, SavedTables) else runs
    return {
        "runs": saved.folder.as_posix() if saved else [run.facts["run"] for run in folders],
        "case": [_column(name, kind) for name, kind in CASE_COLUMNS.items()],
        "tables": {
            name: {"row": table.says, "columns": [_column(*column) for column in table.columns.items()]}
            for name, table in TABLES.items()
        }
        | {name: {"row": _UNDESCRIBED, "columns": []} for name in _undescribed(runs)},
        "queries": dict(list_queries()),
    }


def _undescribed(runs: Source) -> list[str]:
    """Tables of another version."""
    names = list(runs.files()) if isinstance(runs, SavedTables) else table_names(runs)
    return [name for name in names if name not in TABLES]


def _column(name: str, kind: str) -> dict[str, str]:
    return {"name": name, "type": kind, "unit": unit_of(name, kind)}


def print_tables(runs: Source) -> None:
    """The same in words, by unit."""
    width = min(shutil.get_terminal_size((_WIDTH, 0)).columns, 120)
    if isinstance(runs, SavedTables):
        print(f"Saved tables: {runs.folder}")
    elif runs:
        print(f"{count_text(len(runs), 'run folder')}: {', '.join(str(run.facts['run']) for run in runs[:3])}", end="")
        print(" …" if len(runs) > 3 else "")
    print("Every row also has its run and case:")
    print(*_by_unit(CASE_COLUMNS, width=width), sep="\n")
    for name, table in TABLES.items():
        print("", *textwrap.wrap(f"{name}: {table.says}", width, subsequent_indent=_GAP), sep="\n")
        print(*_by_unit(table.columns, width=width), sep="\n")
    for name in _undescribed(runs):
        print(f"\n{name}: {_UNDESCRIBED}")
    print('\nQueries that ship (--name NAME, or FROM "NAME" in your own):')
    for name, says in list_queries().items():
        print(*textwrap.wrap(f"{name}: {says}", width, initial_indent=_GAP, subsequent_indent=_GAP * 3), sep="\n")


def _by_unit(columns: Mapping[str, str], *, width: int) -> Iterator[str]:
    for unit, names in group_by(columns, lambda name: unit_of(name, columns[name])).items():
        yield from textwrap.wrap(
            f"{unit + ':':<12}{' '.join(names)}", width, initial_indent=_GAP, subsequent_indent=" " * (len(_GAP) + 12)
        )
