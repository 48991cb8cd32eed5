"""What a timeline derives of its events: their step, and how much of each communication compute hides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.timeline.columns import DERIVED_COLUMNS, EVENT_COLUMNS
from compare.timeline.timeline import COMMUNICATION, CONTAINER, PART
from tests.compare.timeline.build import comm, compute, container, each, steps, timeline

END = 40
SPAN = st.tuples(st.integers(0, END - 1), st.integers(1, 9)).map(lambda pair: (pair[0], sum(pair)))


def overlap(events, marks=(), role=COMMUNICATION):
    """The derived columns of the events of one role, by device and start."""
    rows = timeline(events, list(marks) or steps(0, 100)).events
    return rows[rows["role"].eq(role)]


def test_a_communication_is_hidden_while_its_device_computes():
    row = overlap([compute(0, 50), comm(40, 80)]).iloc[0]
    assert (row["hidden_ns"], row["exposed_ns"], row["alone_ns"]) == (10, 30, 30)


def test_another_device_that_computes_hides_nothing():
    row = overlap([compute(0, 100, device=1), comm(40, 80, device=0)]).iloc[0]
    assert (row["hidden_ns"], row["exposed_ns"]) == (0, 40)


@pytest.mark.parametrize("role", [CONTAINER, PART])
def test_what_only_covers_or_belongs_to_others_hides_nothing(role):
    row = overlap([compute(0, 100, role=role), comm(40, 80)]).iloc[0]
    assert row["exposed_ns"] == 40


def test_an_exposed_asynchronous_all_reduce_inside_a_loop_is_exposed():
    events = [container(0, 100), compute(0, 30), comm(30, 70), compute(70, 100)]
    assert overlap(events).iloc[0]["exposed_ns"] == 40


def test_compute_that_overlaps_itself_hides_only_once():
    row = overlap([compute(0, 60), compute(50, 70), comm(40, 80)]).iloc[0]
    assert (row["hidden_ns"], row["exposed_ns"]) == (30, 10)


def test_two_that_are_exposed_at_once_share_that_time():
    rows = overlap([comm(0, 10), comm(5, 15, name="other")])
    assert rows["exposed_ns"].tolist() == [10, 10]
    assert rows["alone_ns"].tolist() == [7.5, 7.5]


def test_an_event_belongs_to_the_step_in_which_it_starts():
    marks = steps(10, 20, 30)
    rows = overlap([comm(start, start + 5) for start in (5, 10, 19, 20, 30)], marks)
    assert rows["step"].tolist() == [-1, 0, 0, 1, -1]


def test_steps_of_unknown_device_hold_for_all_that_have_none_of_their_own():
    marks = [*steps(0, 10, 20, devices=(-1,)), *steps(0, 5, 50, devices=(1,))]
    rows = overlap(each(comm, (0, 1), 12, 14), marks)
    assert rows["step"].tolist() == [1, 1]
    rows = overlap(each(comm, (0, 1), 7, 8), marks)
    assert rows["step"].tolist() == [0, 1]


def test_events_come_by_device_and_start_with_all_columns():
    rows = timeline([comm(5, 6, device=1), compute(3, 4), comm(1, 9)], steps(0, 10, devices=(0, 1))).events
    assert rows["start_ns"].tolist() == [1, 3, 5]
    assert list(rows) == [*EVENT_COLUMNS, *DERIVED_COLUMNS]


def test_a_timeline_without_events_has_none():
    assert timeline([], steps(0, 10)).events.empty
    assert timeline([], steps(0, 10)).num_steps == 1


def test_devices_are_counted_as_often_as_they_stand_for_one():
    shown = timeline([compute(0, 1), compute(0, 1, device=4)], steps(0, 9), stands_for={0: (0, 1, 2, 3), 4: (4,)})
    assert shown.num_devices == 5


@given(st.lists(SPAN, max_size=6), st.lists(SPAN, max_size=6))
def test_hidden_and_exposed_are_what_a_sweep_finds(comms, computes):
    busy = {unit for start, end in computes for unit in range(start, end)}
    rows = overlap([*(comm(*span) for span in comms), *(compute(*span) for span in computes)])
    for _, row in rows.iterrows():
        units = set(range(int(row["start_ns"]), int(row["start_ns"] + row["duration_ns"])))
        assert row["hidden_ns"] == len(units & busy)
        assert row["exposed_ns"] == len(units - busy)
    exposed = {unit for start, end in comms for unit in range(start, end)} - busy
    assert rows["alone_ns"].sum() == pytest.approx(len(exposed))
