"""Each query that ships against report.json: on the example, and on runs that are compiled now.

Of a run that is measured, too, in tests/compare/test_execute.py.
"""

import json

import pytest

from compare.query import query_runs
from compare.query.named_queries import list_queries
from compare.query.tables import TABLES
from tests.commands import run_process
from tests.places import EXAMPLE

COMPILED = {
    "pipeline": ("--mesh", "pp2tp4@2xv5e:2x2", "--model", "tiny", "--seq", "128", "--phase", "decode"),
    "experts": ("--mesh", "ep2tp4", "--model", "tiny-moe", "--seq", "128", "--phase", "prefill"),
}


@pytest.fixture(scope="module", params=["example", *(pytest.param(name, marks=pytest.mark.slow) for name in COMPILED)])
def run(request, tmp_path_factory, shared_cache):
    if request.param not in COMPILED:
        return EXAMPLE
    out = tmp_path_factory.mktemp(request.param)
    words = ("-m", "compare.run", *COMPILED[request.param], "--no-pages", "--out", "runs")
    run_process(*words, cwd=out, environment={"WIREDIFF_CACHE": str(shared_cache)}, check=True)
    (folder,) = (out / "runs").iterdir()
    return folder


@pytest.fixture(scope="module")
def report(run):
    return json.loads((run / "report.json").read_text(encoding="utf-8"))


def compiled(report):
    """(phase, arm, cell) -> the program's part of the report."""
    return {
        (phase, arm, program["cell"]): program
        for phase, found in report["phases"].items()
        for arm, default in found["arms"].items()
        for program in (default, *default.get("controls", {}).values())
    }


def programs(report):
    """The same, and what was run and measured."""
    return compiled(report) | {
        (phase, arm, cell): program
        for phase, found in report["phases"].items()
        for arm, default in found["arms"].items()
        for cell, program in default.get("profiles", {}).items()
    }


def rows_of(name, run):
    """(phase, arm, cell) -> its rows, as objects."""
    relation = query_runs(name, run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    keys = {(row["phase"], row["arm"], row["cell"]): [] for row in rows}
    for row in rows:
        keys[row["phase"], row["arm"], row["cell"]].append(row)
    return keys


def near(value):
    return pytest.approx(value, rel=1e-9)


def test_intervals_and_windows_are_those_of_the_report(run, report):
    within, across = rows_of("intervals-within-axes", run), rows_of("windows-across-axes", run)
    for key, program in programs(report).items():
        found = [(row["axes"], row["axes"], row) for row in within.get(key, [])]
        found += [(row["from_axes"], row["to_axes"], row) for row in across.get(key, [])]
        intervals = {(entry["from_axes"], entry["to_axes"]): entry for entry in program["timing"]["intervals"]}
        assert {(source, target) for source, target, _ in found} == set(intervals)
        for source, target, row in found:
            for name in ("n", "median_ns", "p95_ns", "iqr_ns"):
                assert row[name] == near(intervals[source, target][name])


def test_the_matrix_and_messages_are_those_of_the_report(run, report):
    matrix, messages = rows_of("traffic-matrix", run), rows_of("message-sizes", run)
    for key, program in programs(report).items():
        expected = {
            (entry["axes"], entry["device_from"], entry["device_to"], entry["logical_bytes"], entry["routed_bytes"])
            for entry in program["timing"]["matrix"]
        }
        assert expected == {
            (row["axes"], row["device_from"], row["device_to"], row["logical_bytes"], row["routed_bytes"])
            for row in matrix.get(key, [])
        }
        sent = sum(row["logical_bytes"] for row in matrix.get(key, [])) / len(report["mesh"]["devices"])
        assert sent == pytest.approx(program["totals"]["wire_bytes"], abs=1)
        sizes = sorted((e["axes"], e["kind"], e["payload_bytes"], e["count"]) for e in program["timing"]["messages"])
        own = messages.get(key, [])
        assert sizes == sorted((r["axes"], r["kind"], r["payload_bytes"], r["messages_per_step"]) for r in own)
        times = program["timing"]["per_step"]["by_axes"].values()
        assert sum(row["step_payload_bytes"] for row in own) == near(sum(part["payload_bytes"] for part in times))


def test_the_network_s_use_is_that_of_the_report(run, report):
    rows = rows_of("network-use", run)
    for key, program in programs(report).items():
        own = {row["axes"]: row for row in rows[key]}
        network = program["timing"]["network"]
        assert set(own) == set(network)
        for axes, use in network.items():
            assert {name: own[axes][name] for name in use} == use


def test_every_query_that_ships_says_what_it_answers_and_answers(run):
    for name, says in list_queries().items():
        assert says.endswith(".")
        assert len(says) <= 120
        assert query_runs(name, run).columns


def test_a_query_that_ships_is_a_table_of_others():
    assert not list_queries().keys() & TABLES.keys()
    sql = """select axes, step_wire_bytes from "volume-by-axis" where phase = 'decode' and cell = 'tpu'"""
    rows = query_runs(sql, EXAMPLE)
    assert sorted(rows.fetchall()) == [("pp", 40_992), ("pp", 40_992), ("tp", 4_030_608), ("tp", 571_244_688)]
