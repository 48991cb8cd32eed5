"""The timing section of a report: plain, consistent in itself, and honest about what it cannot tell."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from compare.metrics import metrics_section as metrics
from compare.profile.join.profile import read_profile
from compare.report.model.codec import encode
from compare.report.model.report import Report
from compare.timeline.timeline import plain_strings
from tests.compare.timeline.build import comm, compute, container, steps, timeline
from tests.places import PROFILES, ROOT, example_report

REPORT = Report.from_json(example_report())
MESH = REPORT.mesh
PROGRAM = REPORT.phases["prefill"].arms["torchxla"].default
ROWS = PROGRAM.collectives
KNOWN = {row.name: row for row in ROWS}

FIELDS = {
    "source", "label", "devices", "steps", "unjoined_events", "notes", "per_step", "each_step", "by_verdict",
    "collectives", "intervals", "network", "volume", "matrix", "pipeline", "per_device", "imbalance", "stragglers",
    "messages", "work",
}  # fmt: skip


def run(name, start, length, device):
    """An execution of a collective of the example."""
    known = KNOWN[name]
    words = {"kind": known.kind, "axes": known.axes, "scope": known.scope}
    return comm(start, start + length, device=device, name=name, payload=known.payload_bytes, wait=2, **words)


def section(timeline, **known):
    """As a report has it."""
    return encode(metrics.build_section(timeline, **known))


def step_of_the_example():
    """Two steps of 5 ticks on each of 8 devices, every collective as often as it runs; 10 ns each, 5 of them hidden."""
    events, marks = [], []
    for device in range(8):
        at = 0
        for number in range(2):
            begin = at
            for entry in ROWS:
                if not entry.loops:
                    events.append(run(entry.name, at, 10, device))
                    at += 10
            loop = at
            for _ in range(5):
                for entry in [e for e in ROWS if e.loops]:
                    for _ in range(entry.executions // 5):
                        events += [run(entry.name, at, 10, device), compute(at + 5, at + 20, device)]
                        at += 20
            events.append(container(loop, at, device))
            marks.append({"device": device, "step": number, "start_ns": begin, "duration_ns": at - begin})
    return timeline(events, marks)


@pytest.fixture(scope="module")
def example():
    return section(step_of_the_example(), rows=ROWS, mesh=MESH, microbatches=4, link_bytes_per_s=45e9)


def test_it_has_these_fields_and_is_plain(example):
    assert set(example) == FIELDS
    assert json.loads(json.dumps(example, allow_nan=False)) == example


@pytest.mark.parametrize("storage", ["pyarrow", "python"])
def test_it_is_the_same_however_pandas_stores_strings(storage, example):
    """A command has them as Python's own (`plain_strings`, as these tests); in a notebook they are Arrow's."""
    with pd.option_context("mode.string_storage", storage):
        made = step_of_the_example()
        assert section(made, rows=ROWS, mesh=MESH, microbatches=4, link_bytes_per_s=45e9) == example
        profile = read_profile([PROFILES / "jax.xplane.pb.gz"], axes={"dp": 2, "tp": 4})
        assert made.events.columns.dtype.storage == profile.events.columns.dtype.storage == storage
        read = section(profile)
    with plain_strings():
        assert section(read_profile([PROFILES / "jax.xplane.pb.gz"], axes={"dp": 2, "tp": 4})) == read


def names(value):
    """Every name in a plain value but those of axes, kinds and scopes, which are data."""
    if isinstance(value, list):
        return set().union(*map(names, value))
    if not isinstance(value, dict):
        return set()
    data = {axes for axes in value if axes in ("tp", "pp", "all") or "-" in axes or "." in axes}
    return (set(value) - data - {"embed", "sample"}).union(*(names(inner) for inner in value.values()))


def test_the_docs_name_every_field(example):
    text = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    assert {name for name in names(example) if f"`{name}`" not in text} == set()


def test_verdicts_and_collectives_add_up_to_the_exposed_time(example):
    exposed = example["per_step"]["exposed_ns"]
    assert sum(row["exposed_ns"] for row in example["by_verdict"].values()) == pytest.approx(exposed, abs=0.01)
    assert sum(row["exposed_ns"] for row in example["collectives"]) == pytest.approx(exposed, abs=0.01)
    assert example["by_verdict"]["induced"]["exposed_ns"] == 240 * 5
    assert example["by_verdict"]["unknown"]["exposed_ns"] == 0


def test_the_program_runs_what_its_rows_say(example):
    for entry in example["collectives"]:
        assert entry["executions"] == KNOWN[entry["collective"]].executions
        assert entry["payload_bytes"] == entry["executions"] * KNOWN[entry["collective"]].payload_bytes
    assert sum(entry["count"] for entry in example["messages"]) == sum(row.executions for row in ROWS)


def test_the_volume_and_the_matrix_sum_to_the_wire_bytes_of_the_report(example):
    total = PROGRAM.totals.wire_bytes
    assert sum(row["logical_bytes"] for row in example["matrix"]) == total * 8
    assert sum(example["volume"]["all"]["wire_bytes"]) == pytest.approx(total, rel=1e-6)


def test_a_collective_tells_its_speed_and_the_peak_of_its_links(example):
    row = next(row for row in example["collectives"] if row["collective"] == "all-reduce.8")
    assert row["algorithm_bytes_per_s"] == 16_777_216 * 10**8
    assert row["bus_bytes_per_s"] == 16_777_216 * 10**8 * 3 // 2
    assert row["peak_bytes_per_s"] == 45 * 10**9
    assert (row["verdict"], row["cause"], row["communication_ns"], row["wait_ns"]) == ("inherent", "bubble", 800, 160)


def test_the_pipeline_is_that_of_the_mesh(example):
    assert example["pipeline"]["gpipe_bubble_share"] == example["pipeline"]["bubble_share"] == 0.2
    assert [row["stage"] for row in example["pipeline"]["stages"]] == [0, 1]


def test_a_device_that_stands_for_all_tells_of_every_stage_and_of_the_mean_device(example):
    """The model shows alike devices once: here device 0 stands for both stages, of which one alone sends the shift."""
    every = step_of_the_example()
    mine, own_steps = every.events[every.events["device"].eq(0)], every.steps[every.steps["device"].eq(0)]
    shown = replace(every, events=mine.reset_index(drop=True), steps=own_steps, stands_for={0: tuple(range(8))})
    alone = section(shown, rows=ROWS, mesh=MESH, microbatches=4, link_bytes_per_s=45e9)
    assert alone["volume"] == example["volume"]
    assert alone["network"] == example["network"]
    assert alone["pipeline"] == example["pipeline"]
    assert alone["by_verdict"] == example["by_verdict"]
    assert alone["intervals"] == example["intervals"]
    assert alone["messages"] == example["messages"]


def test_scopes_stand_beside_axes_and_kinds(example):
    assert example["per_step"]["by_scope"]["layer.attention.core"]["executions"] == 240
    assert [row["step"] for row in example["each_step"]] == [0, 1]
    assert example["each_step"][0]["exposed_ns"] == example["per_step"]["exposed_ns"]


def test_anybodys_profile_needs_no_rows_and_no_mesh():
    alone = section(timeline([compute(0, 50), comm(40, 80)], steps(0, 100)))
    assert set(alone) == FIELDS
    assert alone["by_verdict"]["unknown"]["exposed_ns"] == 30
    assert (alone["pipeline"], alone["matrix"], alone["stragglers"]) == (None, None, [])
    assert alone["collectives"][0]["bus_bytes_per_s"] is None
    assert alone["network"]["tp"]["bytes_per_up_phase"] is None
    json.dumps(alone, allow_nan=False)


def test_a_profile_without_communication_is_told_too():
    alone = section(timeline([compute(0, 50)], steps(0, 100)), rows=ROWS, mesh=MESH)
    assert alone["per_step"]["communication_ns"] == 0
    assert (alone["collectives"], alone["intervals"], alone["network"], alone["messages"]) == ([], [], {}, [])
    json.dumps(alone, allow_nan=False)


def test_a_profile_without_devices_has_volumes_only():
    events = [run("all-reduce.8", at, 10, -1) for at in range(0, 80, 10)]
    alone = section(
        timeline(events, steps(0, 100, devices=(-1,)), stands_for={-1: tuple(range(8))}),
        rows=ROWS,
        mesh=MESH,
        microbatches=4,
    )
    (row,) = alone["collectives"]
    assert (row["executions"], row["exposed_ns"], row["communication_ns"], row["wait_ns"]) == (1, None, None, None)
    assert alone["by_verdict"]["inherent"]["exposed_ns"] is None
    assert (alone["per_device"], alone["intervals"], alone["pipeline"]) == ([], [], None)
    assert len(alone["notes"]) == 1
    json.dumps(alone, allow_nan=False)


def test_unknown_executions_are_left_out_of_the_matrix_and_noted():
    rows = [replace(row, executions=None, step_wire_bytes=None) if row.name == "all-reduce.8" else row for row in ROWS]
    unknown = section(timeline([compute(0, 50)], steps(0, 100)), rows=rows, mesh=MESH)
    assert unknown["notes"] == [
        "the traffic matrix leaves out all-reduce.8: how often each device runs them is unknown"
    ]
