"""Traffic intervals, on sequences that one can count off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.metrics.network.gaps import measure_gaps, quantiles
from compare.timeline.tracks.tracks import DeviceTracks
from tests.compare.timeline.build import comm, each, interval_rows, steps, timeline


def gaps_of(events, marks, **kwargs):
    return measure_gaps(DeviceTracks.of(timeline(events, marks, **kwargs)))


def pairs(frame):
    return [tuple(row) for row in frame[["from_axes", "to_axes", "interval_ns"]].astype(object).to_numpy()]


def test_within_an_axis_from_the_end_of_one_to_the_start_of_the_next():
    frame = gaps_of([comm(0, 10), comm(25, 30), comm(30, 40)], steps(0, 100))
    assert pairs(frame) == [("tp", "tp", 15), ("tp", "tp", 0)]


def test_across_axes_it_is_signed_and_negative_where_they_overlap():
    frame = gaps_of([comm(0, 10), comm(4, 20, axes="pp"), comm(26, 30)], steps(0, 100))
    assert pairs(frame) == [("tp", "pp", -6), ("tp", "tp", 16), ("pp", "tp", 6)]


def test_what_runs_between_two_of_an_axis_does_not_part_them():
    frame = gaps_of([comm(0, 10), comm(12, 14, axes="pp"), comm(16, 18, axes="pp"), comm(20, 30)], steps(0, 100))
    assert ("tp", "tp", 10) in pairs(frame)
    assert pairs(frame).count(("tp", "pp", 2)) == 1


def test_a_short_one_inside_a_long_one_does_not_end_the_traffic():
    frame = gaps_of([comm(0, 50), comm(10, 20), comm(60, 70)], steps(0, 100))
    assert pairs(frame) == [("tp", "tp", -40), ("tp", "tp", 10)]


def test_steps_and_devices_are_kept_apart():
    frame = gaps_of([comm(0, 10), comm(110, 120), comm(30, 40, device=1)], steps(0, 100, 200, devices=(0, 1)))
    assert frame.empty


def test_the_summary_has_median_p95_iqr_and_n():
    # Intervals 0, 1, 2, …, 20.
    ends = np.cumsum([0, *range(21)]) + 10 * np.arange(22) + 10
    frame = gaps_of([comm(end - 10, end) for end in ends], steps(0, 1000))
    (row,) = interval_rows(frame)
    assert {name: row[name] for name in list(row)[:6]} == {
        "from_axes": "tp",
        "to_axes": "tp",
        "n": 21,
        "median_ns": 10,
        "p95_ns": 19,
        "iqr_ns": 10,
    }
    assert row["quantiles_ns"] == [value / 2 for value in range(41)]


def test_a_device_counts_as_often_as_it_stands_for_one():
    events = [comm(0, 10), comm(20, 30), *each(comm, (7,), 0, 10), *each(comm, (7,), 50, 60)]
    frame = gaps_of(events, steps(0, 100, devices=(0, 7)), stands_for={0: (0, 1, 2), 7: (7,)})
    (row,) = interval_rows(frame)
    assert (row["n"], row["median_ns"]) == (4, 10)


def test_without_devices_there_are_no_intervals():
    assert interval_rows(gaps_of([comm(0, 10, device=-1)], steps(0, 100, devices=(-1,)))) == []


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 4)), min_size=1, max_size=12),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
)
def test_weighted_quantiles_are_those_of_the_repeated_values(drawn, at):
    values, weights = (np.array(part) for part in zip(*drawn, strict=True))
    expected = np.quantile(np.repeat(values, weights), at)
    assert quantiles(values.astype(float), weights, at) == pytest.approx(expected.tolist())
