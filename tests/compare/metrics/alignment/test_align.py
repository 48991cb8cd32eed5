"""Alignment keeps the order, matches as many as it can, and leaves those over that fit worst."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.metrics.alignment import align as module
from compare.metrics.alignment.align import StepCommunications, _cost, _Ends, align


def runs(keys, *, payload=None, offset=None, duration=None, name=None):
    size = len(keys)
    return StepCommunications(
        key=np.array(keys, dtype=np.int64),
        payload=np.array(payload or [1] * size, dtype=float),
        offset=np.array(offset or range(size), dtype=float),
        duration=np.array(duration or [1] * size, dtype=float),
        name=np.array(name or [0] * size, dtype=np.int64),
    )


def pairs(left, right):
    aligned = align(left, right)
    return sorted(zip(aligned.left.tolist(), aligned.right.tolist(), strict=True))


def test_what_runs_equally_often_is_matched_in_order_whatever_stands_between():
    assert pairs(runs([0, 1, 0, 1]), runs([1, 0, 1, 0])) == [(0, 1), (1, 0), (2, 3), (3, 2)]


def test_what_only_one_side_runs_is_left_over():
    assert pairs(runs([0, 0]), runs([1, 0, 1, 0])) == [(0, 1), (1, 3)]
    assert pairs(runs([]), runs([0])) == []


def test_the_payload_tells_the_extra_one():
    assert pairs(runs([0, 0], payload=[8, 8]), runs([0, 0, 0], payload=[8, 4, 8])) == [(0, 0), (1, 2)]


def test_an_unknown_payload_is_like_another_unknown_one():
    nan = float("nan")
    assert pairs(runs([0, 0], payload=[nan, 8]), runs([0, 0, 0], payload=[4, nan, 8])) == [(0, 1), (1, 2)]


def test_the_neighbours_tell_the_extra_one():
    """Anchors (1) stand on both sides; the second block has one sum more."""
    left, right = runs([1, 0, 1, 0, 1, 0]), runs([1, 0, 1, 0, 0, 1, 0])
    assert {(1, 1), (5, 6)} <= set(pairs(left, right))


def test_a_table_too_large_to_search_matches_the_first(monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 1)
    assert pairs(runs([0, 0], payload=[8, 8]), runs([0, 0, 0], payload=[4, 8, 8])) == [(0, 0), (1, 1)]


ROW = st.tuples(st.integers(1, 2), st.integers(0, 9), st.integers(1, 3), st.integers(0, 1))


@given(st.lists(ROW, min_size=1, max_size=4), st.lists(ROW, min_size=1, max_size=6))
def test_no_other_choice_fits_better(left, right):
    sides = []
    for rows in (left, right):
        payload, offset, duration, name = (
            list(column) for column in zip(*sorted(rows, key=lambda row: row[1]), strict=True)
        )
        sides.append(runs([0] * len(rows), payload=payload, offset=offset, duration=duration, name=name))
    few, many = sorted(sides, key=lambda side: side.key.size)
    if few.key.size == many.key.size:
        return
    ends = [_Ends(side, np.arange(side.key.size), np.zeros(side.key.size, np.int64)) for side in (few, many)]

    def total(chosen):
        return sum(_cost(ends[0], row, ends[1], np.array([column]))[0] for row, column in enumerate(chosen))

    best = min(total(chosen) for chosen in combinations(range(many.key.size), few.key.size))
    aligned = align(few, many)
    assert aligned.left.tolist() == list(range(few.key.size))
    assert (np.diff(aligned.right) > 0).all()
    assert total(aligned.right.tolist()) == pytest.approx(best)
