"""The command line: lists, answers in every form, and one line for a wrong request."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import psutil
import pytest

from compare.cli.query import main
from compare.query.engine import _SETTINGS
from compare.query.named_queries import list_queries
from compare.query.tables import TABLES
from meshes.process.command_line import run_to_status
from tests.commands import run_process
from tests.compare.query.run_folders import write_run
from tests.places import EXAMPLE, ROOT

pytestmark = pytest.mark.slow

SQL = (
    "select arm, cell, wire_bytes, dcn_wire_bytes, is_default from totals "
    "where phase = 'decode' and is_default order by arm"
)
ROWS = [("jax", "tpu", 4_071_600, 0, True), ("torchxla", "tpu", 571_285_680, 0, True)]


@pytest.fixture
def query(capsys, monkeypatch):
    """Runs the command: its status, the lines on stdout and on stderr."""

    def run(*words, columns=100):
        monkeypatch.setenv("COLUMNS", str(columns))
        try:
            status = run_to_status(lambda: main([str(word) for word in words]))
        except SystemExit as stopped:
            status = stopped.code
        out, error = capsys.readouterr()
        return status, out.splitlines(), error.splitlines()

    return run


def test_a_question_is_answered_in_a_table(query):
    assert query(EXAMPLE, SQL) == (
        0,
        [
            "                          dcn_",
            "                  wire_  wire_  is_",
            "arm       cell    bytes  bytes  default",
            "───────────────────────────────────────",
            "jax       tpu   4.07 MB    0 B  yes",
            "torchxla  tpu    571 MB    0 B  yes",
        ],
        [],
    )


def test_json_and_csv_have_every_digit(query):
    names = ("arm", "cell", "wire_bytes", "dcn_wire_bytes", "is_default")
    status, out, _ = query(EXAMPLE, SQL, "--json")
    assert (status, json.loads("\n".join(out))) == (0, [dict(zip(names, row, strict=True)) for row in ROWS])
    status, out, _ = query(EXAMPLE, "--csv", SQL)
    assert list(csv.reader(out)) == [list(names), *([*map(str, row[:4]), "true"] for row in ROWS)]


def test_json_has_null_for_what_is_no_number_and_lists_as_lists(query):
    sql = "select 'nan'::double as a, [1, null] as b, {'c': 0.5} as d, 1.5::decimal(3, 1) as e"
    _, out, _ = query(EXAMPLE, sql, "--json")
    assert json.loads("\n".join(out)) == [{"a": None, "b": [1, None], "d": {"c": 0.5}, "e": 1.5}]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_answer_is_written_to_a_file_and_replaces_it(query, tmp_path, suffix):
    file = tmp_path / f"answer.{suffix}"
    for sql in ("select 1 as arm", SQL):
        assert query(EXAMPLE, sql, "--out", file) == (0, [str(file)], [])
    found = pd.read_csv(file) if suffix == "csv" else pd.read_parquet(file)
    assert list(found.itertuples(index=False, name=None)) == ROWS
    assert list(tmp_path.iterdir()) == [file]


def test_a_query_comes_from_a_file_or_by_name(query, tmp_path):
    file = tmp_path / "q.sql"
    file.write_text(f"-- comment\n{SQL};\n")
    assert query(EXAMPLE, "--file", file) == query(EXAMPLE, SQL)
    status, out, _ = query(EXAMPLE, "--name", "bubble", "--json")
    assert (status, len(json.loads("\n".join(out)))) == (0, 10)


def test_without_a_question_tables_columns_units_and_queries_are_listed(query):
    for width in (80, 120):
        status, out, _ = query(EXAMPLE, columns=width)
        assert status == 0
        assert max(map(len, out)) <= width
        words = " ".join(out).split()
        assert {f"{name}:" for name in [*TABLES, *list_queries()]} <= set(words)
        for table in TABLES.values():
            assert set(table.columns) <= set(words)
        assert out[0] == "1 run folder: example-run"
        assert not [line for line in out if "DESCRIBE" in line]
        assert "bytes: payload_bytes wire_bytes step_wire_bytes" in " ".join(words)


def test_a_table_that_is_not_described_is_listed_too(query, tmp_path):
    write_run(tmp_path / "run", tables={"colours": [{"colour": "red"}]})
    assert "colours: of another version; DESCRIBE shows its columns" in query(tmp_path)[1]
    assert query(tmp_path, "describe colours", "--csv")[1][-1].startswith("colour,VARCHAR")


def test_the_list_as_json_has_types_and_units(query):
    status, out, _ = query("--json")
    listed = json.loads("\n".join(out))
    assert status == 0
    assert {"name": "exposed_ns", "type": "DOUBLE", "unit": "ns"} in listed["tables"]["times"]["columns"]
    assert {"name": "tp", "type": "BIGINT", "unit": "number"} in listed["case"]
    assert listed["queries"] == list_queries()
    assert listed["runs"] == []


def test_many_rows_are_cut_on_a_terminal_and_nowhere_else(query):
    status, out, _ = query(EXAMPLE, "select range as n from range(250)")
    assert (status, len(out), out[-1]) == (0, 103, "The first 100 rows; --csv, --json and --out FILE have all.")
    assert len(query(EXAMPLE, "select range as n from range(250)", "--csv")[1]) == 251


WRONG = [
    ((EXAMPLE, "selec 1"), 'Parser Error: syntax error at or near "selec"'),
    ((EXAMPLE, "select wire_byte from totals"), 'Referenced column "wire_byte" not found'),
    ((EXAMPLE, "select * from total"), 'Table with name total does not exist! Did you mean "totals"?'),
    ((EXAMPLE, "select cast('x' as int)"), "Conversion Error"),
    ((EXAMPLE, "select 1; select 2"), "a query is one SELECT (or DESCRIBE, SUMMARIZE, SHOW, FROM …)"),
    ((EXAMPLE, " "), "an argument is empty"),
    ((EXAMPLE, " ;"), "this is nothing"),
    ((EXAMPLE, "copy totals to 'x.csv'"), "this is COPY"),
    ((EXAMPLE, "explain analyze copy totals to 'x.csv'"), "this is EXPLAIN"),
    ((EXAMPLE, "create table x as select 1"), "this is CREATE"),
    ((EXAMPLE, "attach 'x.db'"), "this is ATTACH"),
    ((EXAMPLE, "--name", "nope"), "invalid choice: 'nope'"),
    ((EXAMPLE, "--name", "bubble", SQL), "two queries are given"),
    ((EXAMPLE, "--name", "bubble", "--file", "q.sql"), "not allowed with argument"),
    ((EXAMPLE, "--file", "nowhere.sql"), "nowhere.sql: No such file or directory"),
    ((EXAMPLE, "--file", ROOT / "docs/report.png"), "docs/report.png is no query: it is no text"),
    ((EXAMPLE, SQL, "--out", "x.xlsx"), "'x.xlsx' is neither .parquet nor .csv"),
    ((EXAMPLE, SQL, "--out", "nowhere/x.csv"), "nowhere/x.csv cannot be written: there is no folder nowhere"),
    ((EXAMPLE, SQL, "--out", EXAMPLE / "tables/totals.parquet"), "docs/example-run, which is only read"),
    ((EXAMPLE, "--save", EXAMPLE / "tables/new"), "docs/example-run, which is only read"),
    ((EXAMPLE, "--out", "x.csv"), "--out is given, and no query"),
    ((EXAMPLE, "select 1 as x, 2 as x", "--json"), "two columns are named x"),
    ((EXAMPLE, "bubble"), "bubble is not there; a query has white space in it, and one that ships"),
    (("nowhere", SQL), "nowhere is not there"),
    ((ROOT / "tests", SQL), "tests holds no run folder"),
    ((ROOT / "README.md", SQL), "README.md is no folder of runs"),
    ((SQL,), "no run folder is given, and there is no runs/ here"),
]


@pytest.mark.parametrize(("words", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_request_is_one_line_and_status_2(query, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    status, out, (error,) = query(*words)
    assert (status, out) == (2, [])
    assert says in error
    assert list(tmp_path.iterdir()) == []


def test_runs_of_this_folder_are_asked_by_default(query, tmp_path, monkeypatch):
    write_run(tmp_path / "runs/a", mesh="tp8")
    monkeypatch.chdir(tmp_path)
    assert query("select mesh from runs", "--csv") == (0, ["mesh", "tp8"], [])


def test_a_run_whose_name_has_white_space_is_no_query(query, tmp_path, monkeypatch):
    write_run(tmp_path / "my run", mesh="tp8")
    monkeypatch.chdir(tmp_path)
    status, out, _ = query("my run")
    assert (status, out[0]) == (0, "1 run folder: my run")


def test_no_question_changes_a_run(query, tmp_path):
    run = write_run(tmp_path / "run", tables={"totals": [{"phase": "prefill", "wire_bytes": 1}]})
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for sql in (
        "select * from totals",
        f"copy (select 2) to '{run}/tables/totals.parquet'",
        f"with x as (select 1) select * from x; copy (select 2) to '{run}/new.csv'",
    ):
        query(run, sql)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


TIMES = """select date 'infinity' as d, [timestamp_ns '2020-01-01 00:00:00.123456789', null] as "é;",
    {'at': timestamp '-infinity', 'n': 7} as s, map {date '2020-02-29': 1} as m,
    timestamptz '2020-01-01 00:00:00+00' as z, date '-infinity' as d, 1 as n; -- the end"""


def test_times_without_end_and_nanoseconds_are_printed_as_they_are(query):
    status, lines, _ = query(EXAMPLE, TIMES, "--csv")
    header, row = csv.reader(lines)
    assert header == ["d", "é;", "s", "m", "z", "d", "n"]
    assert (row[0], row[5], row[6], status) == ("infinity", "-infinity", "1", 0)
    assert row[1:4] == ["['2020-01-01 00:00:00.123456789', NULL]", "{'at': -infinity, 'n': 7}", "{2020-02-29=1}"]
    assert row[4].startswith("2020-01-01 00:00:00+")
    status, lines, _ = query(EXAMPLE, "from (describe select date 'infinity' d)", "--json")
    assert (json.loads("".join(lines))[0]["column_type"], status) == ("DATE", 0)


def test_a_query_without_end_ends_in_one_line(query, monkeypatch):
    forever = "with recursive r(i) as (select 1 union all select i + 1 from r) select count(*) from r"
    assert query(EXAMPLE, forever, "--timeout", 1) == (
        2,
        [],
        ["error: no whole answer within 1 s; --timeout SECONDS allows more"],
    )
    assert query(EXAMPLE, "select current_setting('memory_limit') as most", "--csv")[1] == ["most", "4.0 GiB"]
    monkeypatch.setitem(_SETTINGS, "memory_limit", "'256MiB'")  # which is full sooner
    status, _, (said,) = query(EXAMPLE, "select list(range) from range(10_000_000_000)")
    assert (status, said.partition(":")[0]) == (2, "error")
    assert "Out of Memory" in said
    monkeypatch.setattr("compare.query.show.MOST_JSON_ROWS", 9)
    assert query(EXAMPLE, "from range(10)", "--json") == (
        2,
        [],
        ["error: more than 9 rows for one JSON list; --csv and --out FILE write any number"],
    )
    assert query(EXAMPLE, "from range(9)", "--json")[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("form", [(), ("--out", "answer.csv")])
def test_a_question_that_takes_too_long_can_be_stopped(tmp_path, number, form):
    endless = "select count(*) from range(100000000) a, range(100000) b where (a.range * b.range) % 7 = 3"
    with subprocess.Popen(
        [sys.executable, "-m", "compare.query", str(EXAMPLE), endless, *form],
        cwd=tmp_path,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        while psutil.Process(started.pid).cpu_times().user < 2.5:  # what it takes to start is less
            time.sleep(0.05)
        started.send_signal(number)
        assert started.communicate(timeout=20) == ("", "stopped\n")
        assert started.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


def test_without_duckdb_all_is_listed_and_one_line_says_how_to_get_it(tmp_path):
    (tmp_path / "duckdb.py").write_text("raise ImportError")

    def run(*words):
        paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
        return run_process("-m", "compare.query", EXAMPLE, *words, environment=paths)

    asked = run(SQL)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert asked.stderr == (
        "error: duckdb is not installed; get it with pip install -e '.[sql]' "
        "(without a checkout: pip install 'wirediff[sql]')\n"
    )
    listed = run()
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "volume-by-axis: " in listed.stdout


def test_a_relation_answers_in_a_notebook(tmp_path):
    from compare.query import query_runs

    frame = query_runs(SQL, EXAMPLE).df()
    assert list(frame["wire_bytes"]) == [4_071_600, 571_285_680]
    assert query_runs("bubble", EXAMPLE).filter("arm = 'jax'").df()["bubble_share"].tolist() == [0.2] * 4
    with pytest.raises(ValueError, match="no query is named 'nope'; there are best-plan, bubble"):
        query_runs("nope", EXAMPLE)
