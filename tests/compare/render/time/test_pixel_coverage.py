"""What is too short to see is told as a part of its column, and nothing is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.render.time.figures import pixel_coverage
from compare.timeline.intervals import intersect


def _ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_an_interval_covers_parts_of_the_columns_at_its_ends() -> None:
    assert pixel_coverage(_ints(5), _ints(25), width=10, columns=4).tolist() == [0.5, 1, 0.5, 0]
    assert pixel_coverage(_ints(2, 5), _ints(4, 6), width=10, columns=2).tolist() == [pytest.approx(0.3), 0]


def test_what_reaches_beyond_the_picture_is_cut() -> None:
    assert pixel_coverage(_ints(-5, 15), _ints(5, 99), width=10, columns=2).tolist() == [0.5, 0.5]
    assert pixel_coverage(_ints(), _ints(), width=10, columns=3).tolist() == [0, 0, 0]


def test_what_overlaps_counts_for_each() -> None:
    assert pixel_coverage(_ints(0, 0), _ints(10, 5), width=10, columns=1).tolist() == [1.5]


def test_common_parts_are_those_of_each_with_all_others() -> None:
    starts, ends = intersect(_ints(0, 5, 40), _ints(30, 12, 50), _ints(2, 10, 20), _ints(4, 15, 60))
    assert sorted(zip(starts.tolist(), ends.tolist(), strict=True)) == [(2, 4), (10, 12), (10, 15), (20, 30), (40, 50)]


@given(st.lists(st.tuples(st.integers(0, 990), st.integers(1, 300)), max_size=8))
def test_columns_add_up_to_the_intervals(drawn_rows: list[tuple[int, int]]) -> None:
    starts, ends = (_ints(*(row[0] for row in drawn_rows)), _ints(*(min(1000, sum(row)) for row in drawn_rows)))
    parts = pixel_coverage(starts, ends, width=7, columns=143)
    assert parts.sum() * 7 == pytest.approx((ends - starts).sum())
