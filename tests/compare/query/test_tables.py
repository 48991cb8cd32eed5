"""Tables over all runs: what the files hold, older versions among them, and what cannot be read."""

import json

import pyarrow.parquet as pq
import pytest

from compare.query import query_runs
from compare.query.engine import answer_question
from compare.query.errors import QueryError
from compare.query.named_queries import list_queries
from compare.query.runs import CASE_COLUMNS, read_runs
from compare.query.tables import TABLES, unit_of
from compare.query.views import selects, selects_needed
from tests.compare.query.run_folders import PROGRAM, write_run
from tests.places import EXAMPLE, example_report


@pytest.mark.parametrize("table", TABLES)
def test_every_table_of_a_run_has_the_columns_that_are_listed_in_their_types(table):
    rows = query_runs(f"select * from {table}", EXAMPLE)
    types = {name: str(kind) for name, kind in zip(rows.columns, rows.types, strict=True)}
    assert types == {**CASE_COLUMNS, **TABLES[table].columns}


@pytest.mark.slow
def test_every_file_of_a_run_is_a_table_and_has_all_of_its_rows():
    for file in (EXAMPLE / "tables").glob("*.parquet"):
        assert file.stem in TABLES
        counted = query_runs(f"select count(*) from {file.stem}", EXAMPLE).fetchall()
        assert counted == [(pq.read_metadata(file).num_rows,)]
        assert set(pq.read_schema(file).names) == set(TABLES[file.stem].columns)


UNITS = {
    "step_wire_bytes": "bytes",
    "wire_bytes_per_token": "bytes",
    "bytes_per_up_phase": "bytes",
    "p95_ns": "ns",
    "peak_bytes_per_s": "bytes/s",
    "quantiles_ns": "ns",
    "overlap": "share",
    "duty_cycle": "share",
    "executions": "per step",
    "count": "per step",
    "tokens_per_s": "number",
    "stage": "number",
    "others_json": "JSON",
}


def test_units_are_those_that_the_names_say():
    assert {name: unit_of(name, "DOUBLE") for name in UNITS} == UNITS
    assert (unit_of("hlo", "VARCHAR"), unit_of("sp", "BOOLEAN")) == ("text", "yes or no")


def test_a_run_of_an_earlier_version_lacks_columns_and_tables_and_answers(tmp_path):
    older = {"phase": "prefill", "arm": "jax", "cell": "tpu", "wire_bytes": 5}
    write_run(tmp_path / "older", tables={"totals": [older]})
    write_run(
        tmp_path / "newer", tables={"totals": [{**older, "dcn_wire_bytes": 2}], "matrix": [{**PROGRAM, "axes": "tp"}]}
    )
    sql = "select run, wire_bytes, dcn_wire_bytes, ici_wire_bytes from totals order by run"
    assert query_runs(sql, tmp_path).fetchall() == [("newer", 5, 2, None), ("older", 5, None, None)]
    assert query_runs(sql, tmp_path / "older").fetchall() == [("older", 5, None, None)]
    assert query_runs("select run, axes, logical_bytes from matrix", tmp_path).fetchall() == [("newer", "tp", None)]
    assert query_runs("select * from matrix", tmp_path / "older").fetchall() == []


def test_a_table_of_a_later_version_is_there_too(tmp_path):
    write_run(tmp_path / "run", tables={"colours": [{"phase": "prefill", "colour": "red"}]})
    assert query_runs("select mesh, colour from colours", tmp_path).fetchall() == [("pp2tp4", "red")]


def test_what_only_the_report_has_is_a_table_of_all_of_its_programs():
    expected = {
        (phase, arm, program["cell"], axes, use["duty_cycle"], use["up_phases"])
        for phase, found in example_report()["phases"].items()
        for arm, default in found["arms"].items()
        for program in (default, *default["controls"].values())
        for axes, use in program["timing"]["network"].items()
    }
    rows = query_runs("select phase, arm, cell, axes, duty_cycle, up_phases from network", EXAMPLE).fetchall()
    assert len(rows) == len(expected) == 30
    assert set(rows) == expected


def test_profiles_and_witnesses_are_programs_too(tmp_path):
    run = write_run(tmp_path / "run")
    report = json.loads((run / "report.json").read_text())
    for place, cell in (("profiles", "cpu"), ("witnesses", "tunix")):
        timing = {"source": "measured", "pipeline": {"bubble_share": 0.25, "gpipe_bubble_share": None}}
        report["phases"]["prefill"]["arms"]["jax"][place] = {cell: {"cell": cell, "timing": timing}}
    (run / "report.json").write_text(json.dumps(report))
    rows = query_runs("select cell, is_default, source, bubble_share, gpipe_bubble_share from pipelines", run)
    assert sorted(rows.fetchall()) == [("cpu", False, "measured", 0.25, None), ("tunix", False, "measured", 0.25, None)]


def answer(sql, folder):
    rows = []
    answer_question(read_runs([folder]), sql, lambda connection, sql: rows.extend(connection.execute(sql).fetchall()))
    return rows


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "changed": lambda data: data[:40] + bytes(byte ^ 0x5A for byte in data[40:-2000]) + data[-2000:],
    "not Parquet": lambda data: b"hello " * 100,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_table_is_one_line_that_names_the_file(tmp_path, damage):
    for name in ("good", "bad"):
        write_run(tmp_path / name, tables={"totals": [{"phase": "x" * n, "wire_bytes": n * 7919} for n in range(2000)]})
    file = tmp_path / "bad/tables/totals.parquet"
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    with pytest.raises(QueryError) as error:
        answer("select max(phase), sum(wire_bytes) from totals", tmp_path)
    assert str(error.value).startswith(f"{file} cannot be read: ")
    assert "\n" not in str(error.value)


REPORTS = {
    "": "is not there, or empty",
    '{"schema": 1, "phases": {': "cannot be read: Malformed JSON",
    "[1]": "Expected OBJECT, but got ARRAY",
    '{"schema": 1}': "is no report of wirediff",
    '{"schema": 2, "phases": {}}': "is of a later version of wirediff",
    '{"schema": 1, "phases": {"prefill": {"arms": {"jax": {"timing": {"network": 3}}}}}}': "Expected OBJECT, but got",
}


@pytest.mark.parametrize("text", REPORTS)
def test_a_damaged_report_is_one_line_that_names_the_file(tmp_path, text):
    run = write_run(tmp_path / "run")
    (run / "report.json").write_text(text)
    with pytest.raises(QueryError) as error:
        answer("select * from network", run)
    assert str(run / "report.json") in str(error.value)
    assert REPORTS[text] in str(error.value)
    assert "\n" not in str(error.value)


def test_a_query_makes_what_it_reads_and_all_where_it_may_list_them_or_knows_none():
    tables = {"runs", "totals", "collectives"}
    assert list(selects_needed(tables, "select sum(wire_bytes) from totals")) == []
    assert list(selects_needed(tables, 'from "volume-by-axis" join TOTALS using (run)')) == ["volume-by-axis"]
    assert "step-draws" in selects_needed(tables, 'from "plan-holds"')  # which reads it
    for sql in ("show tables", "from duckdb_views()", "select * from totals, information_schema.tables", "from volum"):
        assert selects_needed(tables, sql) == selects()
    assert {*list_queries()} < {name for (name,) in query_runs("show tables", EXAMPLE).fetchall()}
    with pytest.raises(QueryError, match='Did you mean "volume-by-axis"'):
        query_runs('select * from "volume-by-axs"', EXAMPLE)
