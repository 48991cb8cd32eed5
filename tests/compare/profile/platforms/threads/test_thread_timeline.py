"""Threads laid end to end, and what encloses what on them."""

import numpy as np
import pytest

from compare.profile.platforms.cpu_threads import LAST, NONE, Spans, Threads
from compare.timeline.errors import TimingError
from tests.compare.profile.platforms.threads.host import Host


def spans(*pairs):
    return Spans.of(*(np.array(column) for column in zip(*pairs, strict=True)))


def test_the_innermost_of_spans_that_nest_or_follow_each_other():
    innermost = spans((0, 100), (10, 40), (20, 30), (50, 60), (200, 210))
    places = np.array([0, 9, 10, 25, 30, 45, 50, 60, 100, 150, 205, 210, -5])
    assert innermost.innermost(places).tolist() == [0, 0, 1, 2, 1, 0, 3, 0, -1, -1, 4, -1, -1]
    assert innermost.outer.tolist() == [-1, 0, 1, 0, -1]


def test_no_spans_enclose_nothing():
    assert Spans.of(np.empty(0, np.int64), np.empty(0, np.int64)).innermost(np.array([1, 2])).tolist() == [-1, -1]


def test_events_are_in_order_of_threads_and_starts_and_of_equal_starts_the_longer_first(tmp_path):
    host = Host()
    host["b"].event("late", 50, 60).event("inner", 10, 20).event("outer", 10, 40)
    host["a"].event("other", 5, 6, step_num=7)
    threads, _ = host.axis(tmp_path)
    assert list(threads.names) == ["outer", "inner", "late", "other"]
    assert threads.time(threads.begins).tolist() == [10_000, 10_000, 50_000, 5_000]
    assert threads.time(threads.ends).tolist() == [40_000, 20_000, 60_000, 6_000]
    assert threads.numbers("step_num").tolist() == [NONE, NONE, NONE, 7]
    assert threads.thread.tolist() == [0, 0, 0, 1]
    assert threads.time(np.array([LAST])).tolist() == [LAST]


def test_regions_nest_and_those_that_the_profile_cuts_last_to_its_end(tmp_path):
    host = Host()
    host["a"].event("ThreadpoolListener::StopRegion", 2, 2)  # of one that began before
    host["a"].region(1, 10, 90).region(2, 20, 30).event("ThreadpoolListener::StartRegion", 95, 95, _ct=15, _c=3)
    host["b"].region(4, 15, 120)
    threads, _ = host.axis(tmp_path)
    regions = threads.regions
    assert regions.context.tolist() == [1, 2, 3, 4]
    assert threads.time(regions.begins).tolist() == [10_000, 20_000, 95_000, 15_000]
    assert threads.time(regions.ends[[0, 1, 3]]).tolist() == [90_000, 30_000, 120_000]
    assert threads.begins[-3] < regions.ends[2] <= regions.begins[3]  # where the next thread begins


def test_times_that_make_no_sense_together_are_refused_in_one_line(tmp_path):
    host = Host()
    host["a"].event("early", 0, 1).event("late", 4e15, 4e15 + 1)
    for number in range(2):
        host[f"other {number}"].event("x", 5, 6)
    with pytest.raises(TimingError, match="events of the host lie 46 days apart: a time in the profile is damaged"):
        host.axis(tmp_path)


def test_a_host_without_threads_has_no_events():
    threads = Threads((), 0)
    assert len(threads) == 0
    assert threads.events_named(".*").size == 0
    assert threads.regions.begins.size == 0
