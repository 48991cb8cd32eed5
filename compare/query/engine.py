"""DuckDB at work on run folders: one SELECT in, a relation out, and every error one line.

Not the text of a query is checked, but what its connection can do: it has no access to files but by `ReadOnlyFiles`, no
extensions, no settings that a query could change, and its transaction is read-only.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from compare.query.defaults import MOST_SECONDS
from compare.query.errors import QueryError
from compare.query.named_queries import read_query
from compare.query.saved import (
    SavedTables,
    Source,
    create_saved_views,
    read_source,
    saved_selects,
    tables_to_save,
)
from compare.query.sources import plain_paths, scan_file
from compare.query.views import create_views, files_to_read

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "enable_progress_bar": "false",
    "parquet_metadata_cache": "true",
    "memory_limit": "'4GiB'",
    "max_temp_directory_size": "'16GiB'",
}
"""Nothing is fetched from a network, no variable of Python is taken for a table, and memory and disk have an end."""


def query_runs(query: str, *folders: str | Path, allow_files: Sequence[Path] = ()) -> "DuckDBPyRelation":
    """The answer to one SELECT over all run folders in these folders, as DuckDB's relation: `.df()`, `.fetchall()` …

    folders: run folders, folders of them, or one folder of saved tables.
    allow_files: folders whose files the query may read, too, as `files://PATH`.
    query: SQL, or the name of a query that ships (`volume-by-axis`).  `python -m compare.query` lists both tables and
    names.  Raises `QueryError`, one line, for a query that DuckDB refuses and for a folder that cannot be read.  The
    rows are read when they are asked for, and then the error of a damaged file is DuckDB's own.
    """
    if not isinstance(query, str) or isdir(query):
        raise QueryError(f"the query comes first, then the folders: query_runs('volume-by-axis', {query!r})")
    sql = query if any(map(str.isspace, query.strip())) else read_query(query)
    source = read_source([Path(folder) for folder in folders])
    with open_runs(connect(), source, sql, allow_files=allow_files) as connection:
        return connection.sql(sql)


def answer_question(
    runs: Source,
    sql: str,
    show: Callable[["DuckDBPyConnection", str], None],
    *,
    allow_files: Sequence[Path] = (),
    seconds: int = MOST_SECONDS,
) -> None:
    """Answer one SELECT by `show`, in a thread of its own: DuckDB does not heed every signal, and this thread does.

    seconds: after which it is interrupted, and a `QueryError`.
    """
    connection = connect()

    def answer() -> None:
        with open_runs(connection, runs, sql, allow_files=allow_files):
            show(connection, sql)

    with ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        try:
            answered.result(seconds)
        except KeyboardInterrupt:
            connection.interrupt()
            raise
        except TimeoutError:
            connection.interrupt()
            raise QueryError(f"no whole answer within {seconds:,} s; --timeout SECONDS allows more") from None


def connect() -> "DuckDBPyConnection":
    """A database in memory; raises `QueryError` where DuckDB is not installed."""
    try:
        import duckdb
    except ImportError:
        raise QueryError(
            "duckdb is not installed; get it with pip install -e '.[sql]' (without a checkout: pip install "
            "'wirediff[sql]')"
        ) from None
    # What has no room in memory goes there: a folder of its own, since DuckDB lets a query write into it.
    spill = Path(tempfile.gettempdir()) / f"duckdb-{uuid4().hex}"
    connection = duckdb.connect(config={"temp_directory": str(spill)})
    weakref.finalize(connection, shutil.rmtree, spill, ignore_errors=True)
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in _SETTINGS.items()))
    return connection


@contextmanager
def open_runs(
    connection: "DuckDBPyConnection", runs: Source, sql: str, *, allow_files: Sequence[Path] = ()
) -> Iterator["DuckDBPyConnection"]:
    """A connection with a view for each table that this SELECT reads; in here DuckDB's errors become `QueryError`s.

    It can read the files of those tables and those below `allow_files`, and write nothing.  It stays open, since a
    relation of it may be read later.
    """
    import duckdb

    from compare.query.read_only_files import ReadOnlyFiles

    for folder in allow_files:
        if not folder.is_dir():
            raise QueryError(f"{folder} is no folder; --allow-files names folders")
    files = {} if isinstance(runs, SavedTables) else files_to_read(runs, sql)
    paths = list(runs.files().values()) if isinstance(runs, SavedTables) else [p for own in files.values() for p in own]
    try:
        _check_select(connection, sql)
        readable = ReadOnlyFiles(paths, allow_files)
        connection.register_filesystem(readable)
        connection.execute(f"SET allowed_directories = {readable.prefixes}; SET enable_external_access = false")
        if isinstance(runs, SavedTables):
            create_saved_views(connection, runs, sql)
        else:
            create_views(connection, runs, files, sql)
        connection.execute("SET lock_configuration = true; BEGIN TRANSACTION READ ONLY")
        yield connection
    except (duckdb.InvalidInputException, duckdb.IOException) as error:
        raise QueryError(_damaged(paths) or _said(error)) from None
    except duckdb.Error as error:  # that of a damaged page of Parquet is of no kind
        raise QueryError((type(error) is duckdb.Error and _damaged(paths)) or _said(error)) from None


def save_tables(runs: Source, out: Path) -> list[Path]:
    """Write the tables of all runs as one Parquet file each, which a query then reads in their place.

    Sorted, so that the same runs give the same bytes.  Returns the files.
    """
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, sql in saved_selects(tables_to_save()).items():
        files.append(out / f"{name}.parquet")
        answer_question(runs, f"SELECT * FROM ({sql}) ORDER BY ALL", partial(write_rows, out=files[-1]))
    return files


def write_rows(connection: "DuckDBPyConnection", sql: str, *, out: Path) -> None:
    """Write the answer to a `.parquet` or `.csv` file, which takes its place whole."""
    import duckdb

    beside = out.with_name(f".{out.name}.{uuid4().hex}.part")
    answer = connection.sql(sql).to_arrow_reader()
    # By another connection: this one cannot write.
    with duckdb.connect() as writer:
        rows = writer.from_arrow(answer)
        try:
            if out.suffix == ".csv":
                rows.write_csv(str(beside), header=True)
            else:
                rows.write_parquet(str(beside), compression="zstd")
            beside.replace(out)
        finally:
            beside.unlink(missing_ok=True)


def _check_select(connection: "DuckDBPyConnection", sql: str) -> None:
    """A query reads: what would write, or change the connection, is refused."""
    try:
        kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    except ValueError:  # of a statement that the Python package has no name for
        kinds = ["another statement"]
    if kinds != ["SELECT"]:
        said = " and ".join(kinds) or "nothing"
        raise QueryError(f"a query is one SELECT (or DESCRIBE, SUMMARIZE, SHOW, FROM …); this is {said}")


def _said(error: Exception) -> str:
    """DuckDB's message, without the line of the query and the mark below it, and without advice for its own options."""
    words = str(error).partition("\n\nLINE ")[0].partition("\nTry setting ")[0]
    if words.startswith("Traceback"):  # an error of Python's that DuckDB passes on: of a file, or of a value
        words = words.strip().rpartition("\n")[2].partition(": ")[2]
    if "file system operations are disabled" in words:
        words = words.partition(" - ")[0] + "; a query reads its runs, and files:// below a folder of --allow-files"
    return plain_paths(words).removeprefix("Invalid Input Error: ")


def _damaged(files: Sequence[Path]) -> str:
    """Which file cannot be read, where one cannot: DuckDB does not always say."""
    import duckdb

    from compare.query.read_only_files import ReadOnlyFiles

    for file in dict.fromkeys(files):
        try:
            with duckdb.connect() as alone:
                alone.register_filesystem(ReadOnlyFiles([file], ()))
                alone.execute(f"SELECT max(COLUMNS(*)) FROM {scan_file(file)}")
        except duckdb.Error as error:
            return f"{file} cannot be read: {_said(error)}"
    return ""
