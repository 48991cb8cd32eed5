"""Each query that ships against report.json: on the example, and on runs that are compiled now."""

import json
import os
import subprocess
import sys

import pytest

from compare.query import query_runs
from compare.query.named_queries import list_queries
from compare.query.tables import TABLES
from tests.places import EXAMPLE, ROOT

COMPILED = {
    "pipeline": ("--mesh", "pp2tp4@2xv5e:2x2", "--model", "tiny", "--seq", "128", "--phase", "decode"),
    "profiles": ("--mesh", "pp2tp4", "--model", "tiny", "--seq", "128", "--phase", "decode", "--execute", "cpu"),
    "experts": ("--mesh", "ep2tp4", "--model", "tiny-moe", "--seq", "128", "--phase", "prefill"),
}


@pytest.fixture(scope="module", params=["example", *(pytest.param(name, marks=pytest.mark.slow) for name in COMPILED)])
def run(request, tmp_path_factory, shared_cache):
    if request.param not in COMPILED:
        return EXAMPLE
    out = tmp_path_factory.mktemp(request.param)
    subprocess.run(
        [sys.executable, "-m", "compare.run", *COMPILED[request.param], "--out", str(out / "runs")],
        cwd=out, env=os.environ | {"PYTHONPATH": str(ROOT), "WIREDIFF_CACHE": str(shared_cache)}, check=True,
        capture_output=True,
    )  # fmt: skip
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


def tokens(report, phase):
    case = report["case"]
    return case["batch"] * (case["seq"] if phase == "prefill" else 1)


def test_volume_by_axis_adds_up_to_the_totals(run, report):
    rows = rows_of("volume-by-axis", run)
    devices = len(report["mesh"]["devices"])
    for key, program in compiled(report).items():
        own, totals = rows[key], program["totals"]
        assert sum(row["step_wire_bytes"] for row in own) == totals["wire_bytes"]
        for verdict in ("inherent", "inflated", "induced"):
            assert sum(row[f"{verdict}_bytes"] for row in own) == totals[verdict]
        assert sum(row["unknown_rows"] for row in own) == totals["unknown_rows"]
        for row in own:
            of_axes = [entry for entry in program["collectives"] if entry["axes"] == row["axes"]]
            assert row["step_wire_bytes"] == sum(entry["step_wire_bytes"] for entry in of_axes)
            assert row["executions"] == sum(entry["executions"] for entry in of_axes)
            assert row["all_devices_wire_bytes"] == row["step_wire_bytes"] * devices
            assert row["wire_bytes_per_token"] == near(row["step_wire_bytes"] * devices / tokens(report, key[0]))


def test_framework_induced_is_that_of_the_headline(run, report):
    rows = rows_of("framework-induced", run)
    for phase, found in report["phases"].items():
        for line in found["headline"]:
            (row,) = rows[phase, line["arm"], line["cell"]]
            assert row["framework_induced_bytes"] == line["framework_induced"]
            assert row["common_bytes"] == line["common"]
            assert (row["wire_bytes"], row["asked_bytes"]) == (line["wire_bytes"], found["inherent_total"])
            assert row["emitted_over_inherent"] == near(line["ratio"])
    for key, program in compiled(report).items():
        (row,) = rows[key]
        timing = program["timing"]
        assert row["step_ns"] == near(timing["per_step"]["step_ns"])
        assert row["exposed_ns"] == near(timing["per_step"]["exposed_ns"])
        avoidable = sum(timing["by_verdict"][verdict]["exposed_ns"] for verdict in ("inflated", "induced"))
        assert row["avoidable_exposed_ns"] == near(avoidable)


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


WINDOWS = """
    select phase, arm, cell, from_axes, to_axes, count(*) as n, quantile_cont(interval_ns, 0.5) as median_ns,
        quantile_cont(interval_ns, 0.95) as p95_ns
    from windows, range(stands_for) group by all
"""


def test_windows_one_by_one_are_those_that_the_report_sums_up(run, report):
    rows = rows_of(WINDOWS, run)
    for key, program in programs(report).items():
        entries = [entry for entry in program["timing"]["intervals"] if entry["from_axes"] != entry["to_axes"]]
        found = {(row["from_axes"], row["to_axes"]): row for row in rows.get(key, [])}
        assert set(found) == {(entry["from_axes"], entry["to_axes"]) for entry in entries}
        for entry in entries:
            row = found[entry["from_axes"], entry["to_axes"]]
            assert row["n"] == entry["n"]
            assert row["median_ns"] == pytest.approx(entry["median_ns"], abs=0.002)
            assert row["p95_ns"] == pytest.approx(entry["p95_ns"], abs=0.002)


FIRST = """
    with first as (
        select e.phase, e.arm, e.cell, e.device, e.stands_for, c.wire_bytes,
            sum((e.axes <> first_axes)::int) over (
                partition by e.phase, e.arm, e.cell, device order by start_ns, duration_ns desc) as changes
        from (select *, first_value(axes) over (
                partition by phase, arm, cell, device order by start_ns, duration_ns desc) as first_axes
            from events where role = 'communication' and step >= 0) as e
        join collectives as c on (c.phase, c.arm, c.cell, c.name) = (e.phase, e.arm, e.cell, e.collective)
    )
    select phase, arm, cell, sum(wire_bytes * stands_for) as wire_bytes from first where changes = 0 group by all
"""
"""What is sent before the axes change for the first time: it follows no window."""


def test_what_follows_windows_is_all_but_what_comes_before_the_first(run, report):
    rows, first = rows_of("windows-across-axes", run), rows_of(FIRST, run)
    devices = len(report["mesh"]["devices"])
    for key, program in compiled(report).items():
        after = sum(row["step_wire_bytes_after"] for row in rows.get(key, []))
        # What not every device runs counts here as if each did.
        if not any(entry["device_executions"] for entry in program["collectives"]):
            sent = after + first[key][0]["wire_bytes"] / devices
            assert sent == pytest.approx(program["totals"]["wire_bytes"], rel=1e-6, abs=100)


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


def test_the_bubble_is_that_of_the_report(run, report):
    rows = rows_of("bubble", run)
    pipelines = {key: program["timing"]["pipeline"] for key, program in programs(report).items()}
    assert set(rows) == {key for key, pipeline in pipelines.items() if pipeline}
    for key, (row,) in rows.items():
        pipeline = pipelines[key]
        assert row["bubble_share"] == near(pipeline["bubble_share"])
        case = report["case"]
        stages = case["mesh"]["axes"]["pp"]
        assert row["gpipe_bubble_share"] == pytest.approx((stages - 1) / (case["microbatches"] + stages - 1), abs=1e-6)
        bubble = sum(stage["bubble_ns"] for stage in pipeline["stages"]) / len(pipeline["stages"])
        assert row["bubble_ns"] == near(bubble)


def test_what_waits_longest_is_first_in_the_report(run, report):
    rows = rows_of("waits", run)
    for key, program in programs(report).items():
        timing = program["timing"]
        expected = sorted((entry["exposed_ns"] for entry in timing["collectives"]), reverse=True)[:10]
        own = rows.get(key, [])
        assert [row["exposed_ns"] for row in own] == expected
        assert [row["place"] for row in own] == list(range(1, len(own) + 1))
        entries = {entry["collective"]: entry for entry in timing["collectives"]}
        for row in own:
            entry = entries[row["collective"]]
            same = ("scope", "kind", "axes", "verdict", "cause", "communication_ns")
            assert [row[name] for name in same] == [entry[name] for name in same]
            assert row["exposed_share"] == near(entry["exposed_ns"] / timing["per_step"]["step_ns"])


def test_the_network_s_use_is_that_of_the_report(run, report):
    rows = rows_of("network-use", run)
    for key, program in programs(report).items():
        own = {row["axes"]: row for row in rows[key]}
        network = program["timing"]["network"]
        assert set(own) == set(network)
        for axes, use in network.items():
            assert {name: own[axes][name] for name in use} == use


def test_plans_are_ranked_by_the_steps_of_the_report(run, report):
    rows = rows_of("plan-ranking", run)
    for key, program in compiled(report).items():
        (row,) = rows[key]
        step_ns = program["timing"]["per_step"]["step_ns"]
        assert (row["place"], row["step_over_fastest"], row["step_ns"]) == (1, 1, near(step_ns))
        assert row["tokens_per_s"] == near(tokens(report, key[0]) / step_ns * 1e9)


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
