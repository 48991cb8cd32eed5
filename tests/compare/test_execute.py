"""Both arms compiled, and run on 8 virtual CPU devices: what is recorded there, and what the model says."""

import gzip
import json
import re
from pathlib import Path

import duckdb
import jsonschema
import pytest
import yaml

from compare.ccl_bench_metrics.catalog import METRICS
from compare.ccl_bench_metrics.errors import NotApplicable
from compare.ccl_bench_metrics.subject import Request, read_subject
from compare.cli.export import main as export
from compare.report.schema import report_schema
from tests.commands import run_here, run_process
from tests.compare.query import test_named_report as queries
from tests.xla_flags import quick_environment

# Of the controls the one that a test looks at: each is one more program to lower, compile, judge and time.
CASE = ("--mesh", "tp4pp2", "--model", "tiny", "--seq", "128", "--phase", "decode", "--microbatches", "2")
CASE += ("--controls", "attention")
MEASURED = [("jax", "cpu"), ("torchxla", "cpu")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shared_cache):
    scratch = tmp_path_factory.mktemp("execute")
    words = ("-m", "compare.run", *CASE, "--execute", "cpu", "--out", "runs")
    # The steps are short: XLA's CPU backend would optimize them for longer than all five take.
    environment = quick_environment() | {"WIREDIFF_CACHE": str(shared_cache)}
    done = run_process(*words, cwd=scratch, environment=environment)
    assert done.returncode == 0, done.stderr
    return scratch / Path(done.stdout.splitlines()[-1]).parent


@pytest.fixture(scope="module")
def report(folder):
    return json.loads((folder / "report.json").read_text())


@pytest.fixture(scope="module")
def arms(report):
    return report["phases"]["decode"]["arms"]


def has_times(arms):
    for arm in arms.values():
        yield from (arm, *arm["controls"].values(), *arm["profiles"].values())


def test_the_report_follows_its_schema(report):
    jsonschema.validate(report, report_schema())


@pytest.mark.parametrize(("arm", "cell"), MEASURED)
def test_five_steps_of_eight_devices_were_measured_and_every_communication_traced(arms, arm, cell):
    measured = arms[arm]["profiles"][cell]
    timing = measured["timing"]
    assert (timing["source"], timing["devices"], timing["steps"]) == ("measured", 8, 5)
    assert timing["unjoined_events"] == 0
    assert timing["label"].startswith("measured on 8 virtual CPU devices")
    assert measured["case"]["model"]["layers"] == 4


def test_every_timeline_runs_each_collective_as_often_as_its_program_says(arms):
    for entry in has_times(arms):
        ran = {row["collective"]: row["executions"] for row in entry["timing"]["collectives"]}
        # By definition the most that any device runs; in these programs all run alike.
        assert ran == {row["name"]: row["executions"] for row in entry["collectives"]}, entry["cell"]


def test_the_exposed_time_of_a_step_is_divided_by_verdict_and_nothing_is_left(arms):
    for entry in has_times(arms):
        step = entry["timing"]["per_step"]
        parts = entry["timing"]["by_verdict"]
        assert sum(part["exposed_ns"] for part in parts.values()) == pytest.approx(step["exposed_ns"], abs=1)
        assert step["exposed_ns"] + step["hidden_ns"] == pytest.approx(step["communication_ns"], abs=0.01)
        assert parts["unknown"]["exposed_ns"] == 0
        assert step["communication_ns"] <= step["step_ns"]


def test_what_torchxla_waits_for_in_vain_is_its_attention_measured_and_modelled(arms):
    def induced(entry):
        return entry["timing"]["by_verdict"]["induced"]["communication_ns"]

    assert induced(arms["torchxla"]) > 0
    assert induced(arms["torchxla"]["profiles"]["cpu"]) > 0
    assert induced(arms["torchxla"]["controls"]["tpu+einsum"]) == 0
    assert induced(arms["jax"]) == induced(arms["jax"]["profiles"]["cpu"]) == 0


def test_the_tables_of_events_answer_sql_and_add_up_to_the_report(folder, arms):
    columns = (
        "arm, device, line, step, name, hlo_op, scope, kind, axes, start_ns, duration_ns, wait_ns, "
        "hidden_ns, exposed_ns"
    )
    events = f"'{folder}/tables/events.parquet'"
    assert duckdb.sql(f"select {columns} from {events} limit 1").fetchall()
    sql = (
        f"select arm, cell, sum(alone_ns) / 40 from {events} "
        "where source = 'measured' and step >= 0 group by all order by all"
    )
    by_cell = {(arm, cell): exposed for arm, cell, exposed in duckdb.sql(sql).fetchall()}
    assert by_cell == {
        (arm, cell): pytest.approx(arms[arm]["profiles"][cell]["timing"]["per_step"]["exposed_ns"], rel=1e-6)
        for arm, cell in MEASURED
    }


@pytest.mark.parametrize(("arm", "cell"), MEASURED)
def test_the_door_reads_the_same_from_the_profile_alone(folder, arms, arm, cell):
    """It has no contract: so no lost scopes, and no caches; times and volumes are the same."""
    place = folder / arm / "decode" / cell / "trace"
    done = run_here("trace", place, "--mesh", "tp4pp2", "--json")
    assert done.returncode == 0, done.stderr
    printed, expected = json.loads(done.stdout), arms[arm]["profiles"][cell]["timing"]
    for name in ("source", "devices", "steps", "unjoined_events"):
        assert printed[name] == expected[name]
    assert printed["per_step"] == {name: value for name, value in expected["per_step"].items() if name != "by_scope"}


def test_both_arms_are_held_against_each_other_modelled_and_measured(report):
    differences = report["phases"]["decode"]["time_differences"]
    assert set(differences) >= {"modelled", "cpu"}
    for diff in differences.values():
        assert {diff["left"]["arm"], diff["right"]["arm"]} == {"jax", "torchxla"}
        core = [row for row in diff["by_scope"] if (row["scope"], row["axes"]) == ("layer.attention.core", "tp")]
        assert core
        assert core[0]["left_communication_ns"] == 0 < core[0]["right_communication_ns"]


def test_the_trace_for_perfetto_has_every_timed_program(folder, arms):
    with gzip.open(folder / "timeline.perfetto.json.gz") as file:
        events = json.load(file)["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    assert len(names) == len(list(has_times(arms)))
    assert all(any(source in name for source in ("modelled", "measured")) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize(("arm", "cell"), MEASURED)
def test_what_was_measured_goes_to_ccl_bench_and_back(folder, tmp_path, arm, cell):
    """The profile's own numbers, in a card that says what they were measured on."""
    words = ["--to", "ccl-bench", "--out", str(tmp_path / "traces"), "--arm", arm, "--cell", cell]
    assert export([str(folder), *words]) == 0
    (directory,) = (tmp_path / "traces").glob("*-json_tpu")
    card = yaml.safe_load(next(directory.glob("*.yaml")).read_text())
    assert card["workload"]["hardware"]["xpu_spec"]["type"] == "CPU"
    assert "Its times are measured: measured on 8 virtual CPU devices" in card["description"]
    own, back = (
        read_subject(Request(trace=place, arm=arm, phase="decode", cell=cell)) for place in (folder, directory)
    )
    assert back.timeline.source == "measured"
    # The bytes that XLA counts of each operation are in an export alone.
    for name, metric in ((name, METRICS[name]) for name in METRICS if name != "estimated_bandwidth"):
        try:
            expected = metric.measure(own).number
        except NotApplicable as reason:
            with pytest.raises(NotApplicable, match=re.escape(str(reason))):
                metric.measure(back)
        else:
            assert metric.measure(back).number == pytest.approx(expected, rel=1e-9), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [
        queries.test_intervals_and_windows_are_those_of_the_report,
        queries.test_the_matrix_and_messages_are_those_of_the_report,
        queries.test_the_network_s_use_is_that_of_the_report,
    ],
    ids=lambda check: check.__name__,
)
def test_queries_that_ship_tell_what_was_measured(folder, report, check):
    check(folder, report)


@pytest.mark.slow
def test_every_query_that_ships_answers_of_what_was_measured(folder):
    queries.test_every_query_that_ships_says_what_it_answers_and_answers(folder)
