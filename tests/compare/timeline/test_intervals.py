"""Unions of intervals against a sweep that asks of every unit of time what runs in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.timeline.intervals import Union, exposed_shares

END = 30
MANY = st.lists(st.tuples(st.integers(0, END), st.integers(0, END)).map(sorted), max_size=8)
WINDOWS = st.lists(st.tuples(st.integers(-3, END + 3), st.integers(-3, END + 3)).map(sorted), min_size=1, max_size=5)


def columns(pairs):
    return tuple(np.array([pair[side] for pair in pairs], dtype=float) for side in (0, 1))


def union(pairs):
    return Union.of(*columns(pairs))


def cover(pairs):
    """The units of time that any interval covers."""
    return {unit for start, end in pairs for unit in range(start, end)}


def test_intervals_that_overlap_or_touch_become_one():
    merged = union([(5, 8), (0, 2), (2, 3), (6, 10), (12, 12)])
    assert merged.starts.tolist() == [0, 5]
    assert merged.ends.tolist() == [3, 10]
    assert merged.total == 8


def test_no_intervals_cover_nothing():
    nothing = union([])
    assert nothing.total == 0
    assert nothing.before(np.array([0.0, 5.0])).tolist() == [0, 0]
    assert nothing.inside(np.array([0.0]), np.array([9.0])).tolist() == [0]
    assert (nothing & union([(0, 9)])).inside(np.array([0.0]), np.array([9.0])).tolist() == [0]
    assert (union([(0, 9)]) & nothing).inside(np.array([0.0]), np.array([9.0])).tolist() == [0]


@given(MANY, MANY)
def test_a_union_covers_what_any_of_its_intervals_covers(first, second):
    assert union(first).total == len(cover(first))
    assert (union(first) | union(second)).total == len(cover(first) | cover(second))


@given(MANY, WINDOWS)
def test_a_window_holds_what_the_sweep_finds_in_it(pairs, windows):
    units = cover(pairs)
    expected = [len(units & set(range(*window))) for window in windows]
    assert union(pairs).inside(*columns(windows)).tolist() == expected
    before = [len([unit for unit in units if unit < end]) for _, end in windows]
    assert union(pairs).before(columns(windows)[1]).tolist() == before


@given(MANY, MANY, WINDOWS)
def test_a_window_holds_what_both_cover(first, second, windows):
    units = cover(first) & cover(second)
    expected = [len(units & set(range(*window))) for window in windows]
    assert (union(first) & union(second)).inside(*columns(windows)).tolist() == expected


@given(MANY, MANY)
def test_what_several_expose_at_once_is_divided_evenly(pairs, busy):
    units = cover(busy)
    running = {unit: sum(start <= unit < end for start, end in pairs) for unit in cover(pairs)}
    expected = [sum(1 / running[unit] for unit in range(start, end) if unit not in units) for start, end in pairs]
    shares = exposed_shares(*columns(pairs), union(busy))
    assert shares == pytest.approx(expected)
    assert sum(shares) == pytest.approx(len(cover(pairs) - units))
