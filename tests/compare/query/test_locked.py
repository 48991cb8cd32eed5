"""A query reads its runs and nothing else, and writes nothing, whatever statement or function it uses."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from compare.query import query_runs
from compare.query.engine import connect, open_runs
from compare.query.errors import QueryError
from compare.query.saved import read_source
from tests.compare.query.run_folders import write_run

SECRET = "gone-42"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder, and beside it what a query must not see: one file of every kind that DuckDB reads."""
    root = tmp_path_factory.mktemp("locked")
    write_run(root / "run")
    outside = root / "outside"
    outside.mkdir()
    for name in ("a.csv", "a.txt", "a.tsv"):
        (outside / name).write_text(f"word\n{SECRET}\n")
    for name in ("a.json", "a.ndjson"):
        (outside / name).write_text(f'{{"word": "{SECRET}"}}\n')
    pd.DataFrame({"word": [SECRET]}).to_parquet(outside / "a.parquet")
    (outside / "empty").mkdir()
    with duckdb.connect(str(outside / "a.duckdb")) as made:
        made.execute(f"CREATE TABLE a AS SELECT '{SECRET}' AS word")
    return root


def state(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(root.rglob("*"))
    }


STATEMENTS = {
    "copy": "COPY (SELECT 'gone') TO '{run}/report.json' (FORMAT csv)",
    "copy a table": "COPY totals TO '{run}/tables/totals.parquet' (FORMAT parquet)",
    "copy, in place": "COPY (SELECT 1 AS a) TO '{run}/report.json' (FORMAT csv, USE_TMP_FILE false)",
    "copy by the files of the runs": "COPY (SELECT 1 AS a) TO 'runs://{run}/tables/totals.parquet' (FORMAT parquet)",
    "copy beside them": "COPY (SELECT 1) TO 'runs://{run}/tables/more.parquet' (FORMAT parquet, USE_TMP_FILE false)",
    "copy by threads": "COPY (SELECT 1 AS a) TO '{out}/empty' (FORMAT csv, PER_THREAD_OUTPUT true)",
    "copy by partition": "COPY (SELECT 1 AS a, 2 AS b) TO '{out}/empty' (FORMAT csv, PARTITION_BY (a))",
    "copy to a name": "COPY (SELECT 1 AS a) TO 'files://{out}/new.csv'",
    "copy from": "COPY totals FROM '{out}/a.csv'",
    "copy database": "COPY FROM DATABASE memory TO memory",
    "insert": "INSERT INTO runs (run) VALUES ('evil') RETURNING run",
    "insert into a view": "INSERT INTO totals (arm) VALUES ('evil') RETURNING arm",
    "update": "UPDATE runs SET model = 'evil' RETURNING run",
    "delete": "DELETE FROM runs RETURNING run",
    "merge": "MERGE INTO runs USING (SELECT 'run' AS run) AS more USING (run) WHEN MATCHED THEN DELETE RETURNING run",
    "truncate": "TRUNCATE runs",
    "create table": "CREATE TABLE new AS SELECT 1",
    "create a temporary table": "CREATE TEMP TABLE new AS SELECT 1",
    "create view": "CREATE OR REPLACE VIEW totals AS SELECT 1",
    "create macro": "CREATE MACRO f(a) AS a + 1",
    "create schema": "CREATE SCHEMA new",
    "create sequence": "CREATE SEQUENCE new",
    "create type": "CREATE TYPE new AS ENUM ('a')",
    "create index": "CREATE INDEX new ON runs (run)",
    "create secret": "CREATE PERSISTENT SECRET new (TYPE s3)",
    "alter": "ALTER TABLE runs ADD COLUMN a INTEGER",
    "comment": "COMMENT ON TABLE runs IS 'evil'",
    "drop": "DROP VIEW totals",
    "attach": "ATTACH '{out}/a.duckdb' AS other",
    "attach to read": "ATTACH '{out}/a.duckdb' AS other (READ_ONLY)",
    "attach a new file": "ATTACH '{out}/new.duckdb'",
    "attach sqlite": "ATTACH '{out}/a.duckdb' (TYPE sqlite)",
    "detach": "DETACH memory",
    "use": "USE memory",
    "export": "EXPORT DATABASE '{out}/empty'",
    "import": "IMPORT DATABASE '{out}/empty'",
    "install": "INSTALL httpfs",
    "install from a file": "INSTALL '{out}/a.txt'",
    "load": "LOAD httpfs",
    "load a file": "LOAD '{out}/a.txt'",
    "update extensions": "UPDATE EXTENSIONS",
    "set": "SET enable_external_access = true",
    "set global": "SET GLOBAL allowed_directories = ['/']",
    "reset": "RESET enable_external_access",
    "set a variable": "SET VARIABLE a = 1",
    "unlock": "SET lock_configuration = false",
    "pragma": "PRAGMA enable_profiling",
    "pragma of logs": "PRAGMA enable_logging",
    "call": "CALL enable_logging(storage = 'file', storage_path = '{out}/log')",
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "checkpoint": "CHECKPOINT",
    "force checkpoint": "FORCE CHECKPOINT",
    "vacuum": "VACUUM",
    "analyze": "ANALYZE",
    "prepare": "PREPARE p AS SELECT 1",
    "execute": "EXECUTE p",
    "explain analyze": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}/new.csv'",
    "two": "SELECT 1; COPY (SELECT 1) TO '{out}/new.csv'",
}
"""Of DuckDB's documentation, all that write, attach, install, log or change the session; some more ways to copy."""

READERS = (
    "'{out}/a.csv'",
    "'{out}/a.parquet'",
    "'{out}/a.json'",
    "'{out}/*.csv'",
    "'{out}/a.duckdb'",
    "'file://{out}/a.csv'",
    "'files://{out}/a.csv'",
    "'runs://{out}/a.csv'",
    "'runs://{run}/../outside/a.csv'",
    "'https://example.org/a.csv'",
    "'s3://bucket/a.parquet'",
    "'{run}/case.json'",
    "'{run}/tables/totals.parquet'",
    "enable_logging(storage = 'file', storage_path = '{out}/log')",
    "enable_profiling(save_location = '{out}/profile')",
    "force_checkpoint()",
    "duckdb_secrets()",
    "duckdb_extensions()",
)


def refused(sql: str, places: Path) -> str:
    """The one line that refuses it; nothing has changed."""
    words = sql.format(run=places / "run", out=places / "outside")
    before = state(places)
    with pytest.raises((QueryError, duckdb.Error)) as error:
        query_runs(words, places / "run").fetchall()
    assert state(places) == before
    return str(error.value)


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_writes_attaches_installs_or_logs(places, name):
    refused(STATEMENTS[name], places)
    refused(f"WITH x AS ({STATEMENTS[name]}) SELECT x.* FROM x, totals", places)


@pytest.mark.parametrize("what", READERS)
def test_nothing_but_the_runs_is_read(places, what):
    assert SECRET not in refused(f"SELECT * FROM {what}", places)


def try_in_turn(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]] | duckdb.Error:
    """Rows or the error, in a transaction of its own, since an error ends one."""
    cursor = connection.cursor()
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    try:
        return cursor.execute(sql).fetchmany(100)
    except duckdb.Error as error:
        return error


def test_no_table_function_of_this_duckdb_shows_a_file_or_changes_one(places):
    kinds = "('table', 'table_macro', 'pragma')"
    listed = duckdb.sql(f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN {kinds}")
    names = [row[0] for row in listed.fetchall()]
    assert {"read_csv", "read_parquet", "read_text", "glob", "sniff_csv", "parquet_metadata"} <= {*names}
    before = state(places)
    ran = set()
    with open_runs(connect(), read_source([places / "run"]), "select * from totals") as connection:
        for name in names:
            for file in sorted((places / "outside").iterdir()):
                for arguments in (f"'{file}'", f"['{file}']", f"'files://{file}'", f"'runs://{file}'"):
                    shown = try_in_turn(connection, f'SELECT * FROM "{name}"({arguments})')
                    assert SECRET not in str(shown), name
                    ran |= {name} if isinstance(shown, list) else set()
    assert state(places) == before
    assert not {name for name in ran if name.startswith(("read_", "parquet_", "sniff", "glob"))}


def test_the_command_leaves_the_report_of_the_run(places):
    report = places / "run/report.json"
    before = report.read_bytes()
    sql = f"WITH x AS (COPY (SELECT 'gone') TO '{report}' (FORMAT csv)) SELECT * FROM x"
    argv = [sys.executable, "-m", "compare.query", str(places / "run"), sql]
    ended = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, report.read_bytes()) == (2, "", before)
    (line,) = ended.stderr.splitlines()
    assert line == (
        f'error: Permission Error: Cannot access file "{report}"; a query reads its runs, and files:// below a folder '
        f"of --allow-files"
    )


def test_a_folder_that_is_allowed_is_read_and_not_written(places):
    out = places / "outside"
    (out / "link.json").symlink_to(places / "run/case.json")

    def ask(sql):
        return query_runs(sql, places / "run", allow_files=[out / "empty", out]).fetchall()

    before = state(places)
    assert ask(f"SELECT * FROM 'files://{out}/a.csv'") == [(SECRET,)]
    assert ask(f"SELECT word, count(*) FROM read_json('files://{out}/*.*json') GROUP BY ALL") == [(SECRET, 2)]
    assert ask(f"SELECT word FROM 'files://{out}/a.parquet', totals") == [(SECRET,)]
    for sql in (f"COPY (SELECT 1) TO 'files://{out}/new.csv'", f"COPY (SELECT 1) TO '{out}/new.csv'"):
        with pytest.raises((QueryError, duckdb.Error)):
            ask(f"WITH x AS ({sql}) SELECT * FROM x")
    for name in (places / "run/case.json", out / "../run/case.json", out / "link.json"):
        with pytest.raises((QueryError, duckdb.Error), match=r"a query may not read|a query reads its runs"):
            ask(f"SELECT * FROM read_text('files://{name}')")
    with pytest.raises(QueryError, match="a is no folder"):
        query_runs("select 1", places / "run", allow_files=[out / "a"])
    assert state(places) == before


@pytest.mark.parametrize("link", ["tables", "tables/totals.parquet"])
def test_a_table_that_lies_elsewhere_is_said(tmp_path, link):
    run = write_run(tmp_path / "run")
    (run / link).rename(tmp_path / "elsewhere")
    (run / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(QueryError, match=f"{run}/tables/totals.parquet leads out of the run folder"):
        query_runs("select * from totals", run)
    assert len(query_runs("select * from runs", run).fetchall()) == 1


def test_a_link_to_nothing_and_a_folder_in_a_table_s_place_are_said(tmp_path):
    run = write_run(tmp_path / "run")
    (run / "tables/events.parquet").symlink_to(tmp_path / "nowhere")
    (run / "tables/steps.parquet").mkdir()
    for name in ("events", "steps"):
        with pytest.raises(QueryError, match=f"{run}/tables/{name}.parquet is no file"):
            query_runs(f"select * from {name}", run)


def test_a_folder_that_cannot_be_listed_is_said(tmp_path, monkeypatch):
    write_run(tmp_path / "a/run")
    write_run(tmp_path / "b/run")
    listed = __import__("os").scandir

    def refuse(at):
        if str(at).endswith("/b"):
            raise PermissionError(13, "Permission denied", str(at))
        return listed(at)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(QueryError, match=f"{tmp_path}/b cannot be read: Permission denied"):
        query_runs("select * from runs", tmp_path)


def test_a_column_may_be_named_as_duckdb_names_its_own(tmp_path):
    run = write_run(tmp_path / "run", tables={"totals": [{"phase": "prefill", "filename": "x"}]})
    assert query_runs("select filename, phase from totals", run).fetchall() == [("x", "prefill")]


def test_an_error_of_python_is_said_in_its_last_line(places):
    with pytest.raises(QueryError) as error:
        query_runs("select 1 from 'runs:///elsewhere.parquet'", places / "run")
    assert str(error.value) == "a query may not read /elsewhere.parquet"
