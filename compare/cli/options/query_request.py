"""The command line of `compare.query`: which runs, which question, and where the answer goes."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compare.query.defaults import DEFAULT_FOLDER, MOST_SECONDS
from compare.query.errors import QueryError
from compare.query.named_queries import name_queries, read_query
from meshes.process.command_line import command_parser, path, whole_number

if TYPE_CHECKING:
    from pathlib import Path

SUFFIXES = (".parquet", ".csv")
"""Of `--out`."""

_MOST_SQL = 1 << 20
"""Letters of a query."""


def parse_question(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with `runs`, `sql` (empty: what can be asked) and `form` (`table`, `json` or `csv`).

    Raises `QueryError`, one line, where a folder, a file or a name is not there.
    """
    parser = command_parser(
        "compare.query",
        "Ask any number of run folders a question in SQL; without one, list tables, columns and the queries that ship.",
        example='runs/ "select mesh, arm, phase, wire_bytes from totals where is_default"',
    )
    parser.add_argument(
        "words",
        metavar="RUN|DIR|SQL",
        nargs="*",
        help=f"run folders or directories of runs (default: {DEFAULT_FOLDER}/), then one SQL statement",
    )
    query = parser.add_mutually_exclusive_group()
    query.add_argument("--name", metavar="NAME", choices=name_queries(), help="a query that ships")
    query.add_argument("--file", metavar="Q.sql", type=path, help="a file with one query")
    save = "save the tables of all runs there; a query reads it as it reads runs"
    query.add_argument("--save", metavar="FOLDER", type=path, help=save)
    parser.add_argument(
        "--allow-files",
        metavar="FOLDER",
        type=path,
        action="append",
        default=[],
        help="let the query read files below FOLDER, as 'files://FOLDER/a.csv' (default: only its runs); repeatable",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=whole_number, default=MOST_SECONDS, help="end a query that takes longer"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print rows as a JSON list of objects")
    form.add_argument("--csv", action="store_true", help="print rows as CSV")
    form.add_argument("--out", metavar="FILE", type=_out, help="write rows to FILE.parquet or FILE.csv")
    request: argparse.Namespace = parser.parse_intermixed_args(argv)
    folders, sql = _split(request.words)
    if sql and (request.name or request.file):
        parser.error("two queries are given; one is answered at a time")
    sql = read_query(request.name) if request.name else _read_file(request.file) if request.file else sql
    if request.save and (sql or request.csv or request.out):
        parser.error("--save writes the tables of the runs; ask them in a second command")
    if request.allow_files and not sql:
        parser.error("--allow-files is given, and no query that could read files")
    if request.out and not sql:
        parser.error("--out is given, and no query; write SQL, --name or --file")
    default = path(DEFAULT_FOLDER)
    if sql and not folders and not default.is_dir():
        parser.error(f"no run folder is given, and there is no {DEFAULT_FOLDER}/ here")
    from compare.query.saved import check_out, check_save, read_source

    runs = read_source(folders or [default]) if sql or folders or request.save else []
    if request.out:
        check_out(request.out, runs)
    if request.save:
        check_save(request.save, runs)
    request.runs, request.sql = runs, sql
    request.form = "json" if request.json else "csv" if request.csv else "table"
    return request


def _split(words: Sequence[str]) -> tuple["list[Path]", str]:
    """Folders, and the SQL behind them: a last word with white space in it that is no path."""
    sql = words[-1] if words and any(map(str.isspace, words[-1])) and not _exists(words[-1]) else ""
    return [path(word) for word in (words[:-1] if sql else words)], sql


def _exists(word: str) -> bool:
    try:
        return path(word).exists()
    except (OSError, ValueError):  # too long, or a zero byte: no path
        return False


def _read_file(file: "Path") -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            sql = opened.read(_MOST_SQL + 1)
    except UnicodeDecodeError:
        raise QueryError(f"{file} is no query: it is no text") from None
    if not sql.strip() or len(sql) > _MOST_SQL:
        raise QueryError(f"{file} is no query: it is empty, or has more than {_MOST_SQL:,} letters")
    return sql


def _out(word: str) -> "Path":
    out = path(word)
    if out.suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{word!r} is neither .parquet nor .csv; write a name like answer.csv")
    return out
