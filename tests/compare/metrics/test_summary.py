"""Means over devices and steps, on timelines whose answer is known by hand, and against a sweep."""

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.timeline.errors import TimingError
from compare.timeline.timeline import PART
from tests.compare.timeline.build import comm, compute, container, each, steps, timeline, trace_summary

PERMUTE = {"kind": "collective-permute", "axes": "pp", "scope": "pipeline.shift", "name": "permute"}


def per_step(*args, **kwargs):
    return trace_summary(timeline(*args, **kwargs))["per_step"]


def test_the_summary_has_these_fields():
    summary = trace_summary(timeline([compute(0, 50), comm(40, 80)], steps(0, 100), unjoined_events=3))
    assert {name: summary[name] for name in ("source", "devices", "steps", "unjoined_events")} == {
        "source": "measured",
        "devices": 1,
        "steps": 1,
        "unjoined_events": 3,
    }
    times = {
        "step_ns": 100,
        "communication_ns": 40,
        "exposed_ns": 30,
        "hidden_ns": 10,
        "wait_ns": None,
        "compute_ns": 50,
        "communication_fraction": 0.4,
        "overlap": 0.25,
    }
    every = times | {"executions": 1, "payload_bytes": 1000}
    assert summary["per_step"] == times | {"by_axes": {"tp": every}, "by_kind": {"all-reduce": every}}
    assert json.loads(json.dumps(summary)) == summary


def test_one_device_that_never_communicates_has_no_overlap():
    times = per_step([compute(0, 80)], steps(0, 100))
    assert (times["communication_ns"], times["communication_fraction"], times["overlap"]) == (0, 0, None)
    assert times["by_axes"] == {}


def test_local_work_and_what_encloses_it_is_no_communication():
    events = [
        container(0, 800, name="while.1"),
        compute(0, 500, name="broadcast.7"),
        comm(500, 800),
        compute(0, 800, name="collective_rpc", role=PART),
    ]
    times = per_step(events, steps(0, 800))
    assert times["communication_fraction"] == 0.375
    assert (times["hidden_ns"], times["overlap"]) == (0, 0)


def test_two_collectives_at_once_are_communication_once():
    times = per_step([comm(0, 10), comm(5, 15, **PERMUTE)], steps(0, 100))
    assert times["communication_ns"] == 15
    assert (times["by_axes"]["tp"]["communication_ns"], times["by_axes"]["pp"]["communication_ns"]) == (10, 10)


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_volumes_do_not_change_with_the_number_of_devices_in_the_file(devices):
    every = range(devices)
    events = [*each(comm, every, 0, 10, payload=64), *each(comm, every, 20, 30, payload=64)]
    times = per_step(events, steps(0, 50, devices=every))["by_kind"]["all-reduce"]
    assert (times["executions"], times["payload_bytes"]) == (2, 128)


def test_means_are_over_devices_and_steps():
    events = [comm(0, 10, device=0), comm(100, 130, device=0), comm(0, 20, device=1)]
    times = per_step(events, steps(0, 100, 200, devices=(0, 1)))
    assert times["communication_ns"] == (10 + 30 + 20 + 0) / 4
    assert times["by_axes"]["tp"]["executions"] == 0.75


def test_a_device_without_events_counts_with_zeros():
    assert per_step([comm(0, 10)], steps(0, 100, devices=(0, 1)))["communication_ns"] == 5


def test_a_shown_device_weighs_as_many_as_it_stands_for():
    events = [comm(0, 10, device=0), comm(0, 20, device=3)]
    times = per_step(events, steps(0, 100, devices=(0, 3)), stands_for={0: (0, 1, 2), 3: (3,)})
    assert times["communication_ns"] == 12.5
    assert times["by_axes"]["tp"]["executions"] == 1


def test_times_are_cut_at_the_edges_of_a_step_and_executions_count_where_they_start():
    times = per_step([comm(90, 130), comm(250, 260)], steps(0, 100, 200))
    assert times["communication_ns"] == (10 + 30) / 2
    assert times["by_axes"]["tp"]["executions"] == 0.5


def test_waiting_comes_first_and_is_counted_once():
    events = [comm(0, 10, wait=4), comm(2, 12, wait=6, **PERMUTE)]
    times = per_step(events, steps(0, 100))
    assert times["wait_ns"] == 8
    assert (times["by_axes"]["tp"]["wait_ns"], times["by_axes"]["pp"]["wait_ns"]) == (4, 6)


def test_waiting_that_is_shown_in_part_is_noted():
    times = trace_summary(timeline([comm(0, 10, wait=4), comm(20, 30)], steps(0, 100)))
    assert times["per_step"]["wait_ns"] == 4
    assert times["notes"] == ["1 of 2 communications do not show how long they wait"]


def test_fractions_of_a_nanosecond_are_told_to_the_picosecond():
    times = per_step([comm(0, 1 / 3)], steps(0, 2))
    assert (times["communication_ns"], times["step_ns"]) == (0.333, 2)
    assert isinstance(times["step_ns"], int)


def test_an_unknown_payload_makes_the_sum_unknown():
    times = per_step([comm(0, 10, payload=float("nan")), comm(20, 30, **PERMUTE)], steps(0, 100))
    assert times["by_axes"]["tp"]["payload_bytes"] is None
    assert times["by_axes"]["pp"]["payload_bytes"] == 1000


def test_events_of_no_known_device_have_volumes_and_no_times():
    events = [comm(start, start + 10, device=-1, payload=64) for start in range(0, 80, 10)]
    times = trace_summary(timeline(events, steps(0, 100, devices=(-1,)), stands_for={-1: tuple(range(4))}))
    assert times["per_step"]["step_ns"] == 100
    assert times["per_step"]["communication_ns"] is None
    assert times["per_step"]["exposed_ns"] is None
    assert times["per_step"]["by_axes"]["tp"]["executions"] == 2
    assert times["per_step"]["by_axes"]["tp"]["payload_bytes"] == 128
    assert times["notes"] == [
        "events have no device: times are unknown; executions and payload are divided by the 4 devices"
    ]


def test_some_events_of_unknown_device_are_in_volumes_and_noted():
    marks = steps(0, 100, devices=(0, 1, -1))
    times = trace_summary(timeline([comm(0, 10), comm(0, 10, device=1), comm(0, 30, device=-1)], marks))
    assert times["per_step"]["communication_ns"] == 10
    assert times["per_step"]["by_axes"]["tp"]["executions"] == 1.5
    assert times["notes"] == ["1 of 3 events name no device: they count in volumes, but in no time"]


def test_a_device_whose_events_are_lost_is_unknown_and_not_idle():
    """In step 1 the second device's collective bears no device: that device counts in step 0 only."""
    marks = steps(0, 100, 200, devices=(0, 1, -1))
    events = [comm(0, 10), comm(0, 30, device=1), comm(100, 110), comm(100, 130, device=-1)]
    times = trace_summary(timeline([*events, compute(10, 20)], marks))
    assert times["per_step"]["communication_ns"] == round((10 + 30 + 10) / 3, 3)
    assert times["per_step"]["by_axes"]["tp"]["executions"] == 1
    assert times["notes"] == [
        "1 of 5 events name no device: they count in volumes, but in no time",
        "1 of 4 steps of single devices show no other event: means of times leave them out",
    ]


def test_devices_without_steps_are_left_out_and_noted():
    times = trace_summary(timeline([comm(0, 10), comm(0, 30, device=5)], steps(0, 100)))
    assert times["per_step"]["communication_ns"] == 10
    assert times["notes"] == ["devices 5 have events and no steps: they are left out"]


@pytest.mark.parametrize("marks", [[], steps(7, 7)])
def test_a_timeline_without_a_step_says_so(marks):
    with pytest.raises(TimingError, match="no step that lasts"):
        trace_summary(timeline([comm(0, 10)], marks))


def test_no_summary_changes_its_timeline():
    given_ = timeline([compute(0, 50), comm(40, 80)], steps(0, 100))
    before = given_.events.copy(deep=True)
    trace_summary(given_)
    pd.testing.assert_frame_equal(given_.events, before)


SPAN = st.tuples(st.integers(-5, 45), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair)))
EVENTS = st.lists(st.tuples(SPAN, st.integers(0, 1), st.sampled_from(["tp", "pp", ""])), max_size=10)


@settings(max_examples=30)
@given(EVENTS)
def test_every_time_is_what_a_sweep_finds(drawn):
    """Each unit of time of each device is communicating, computing, both or neither; steps are 0 … 20 … 40."""
    events = [
        comm(*span, device=device, axes=axes) if axes else compute(*span, device=device) for span, device, axes in drawn
    ]
    times = per_step(events, steps(0, 20, 40, devices=(0, 1)))
    units = {
        axes: {(device, unit) for span, device, of in drawn if of == axes for unit in range(*span) if 0 <= unit < 40}
        for axes in ("tp", "pp", "")
    }
    talking = units["tp"] | units["pp"]
    assert times["communication_ns"] == pytest.approx(len(talking) / 4)
    assert times["exposed_ns"] == pytest.approx(len(talking - units[""]) / 4)
    assert times["hidden_ns"] == pytest.approx(len(talking & units[""]) / 4)
    assert times["compute_ns"] == pytest.approx(len(units[""]) / 4)
    for axes, row in times["by_axes"].items():
        assert row["communication_ns"] == pytest.approx(len(units[axes]) / 4)
        assert row["exposed_ns"] == pytest.approx(len(units[axes] - units[""]) / 4)
