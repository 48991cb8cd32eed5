"""When a collective has its links: intervals by hand."""

import pytest

from compare.schedule.step_simulator import EgressLinks

A, B = frozenset({0, 1}), frozenset({1, 2})
ELSEWHERE = frozenset({7})


def taken():
    """Link 1 from 10 to 20 by transfer 0, and from 50 to 90 by transfer 1."""
    links = EgressLinks()
    assert (links.take(A, 0, 10, 10, 0), links.take(B, 0, 50, 40, 1)) == (10, 50)
    return links


@pytest.mark.parametrize(
    ("wanted", "ns", "begins"),
    [
        (0, 10, 0),  # before all
        (0, 11, 20),  # too long for that, and not for the gap
        (12, 30, 20),
        (12, 31, 90),
        (60, 1, 90),
    ],
)
def test_who_comes_later_goes_before_where_it_fits_the_gap(wanted, ns, begins):
    assert taken().take(A, 0, wanted, ns, 2) == begins


def test_other_links_and_groups_of_the_same_transfer_do_not_wait():
    assert taken().take(ELSEWHERE, 0, 12, 100, 2) == 12
    assert taken().take(B, 0, 60, 40, 1) == 60
    assert taken().take(A, 0, 12, 40, 0) == 90


def test_what_is_over_is_forgotten():
    links = taken()
    assert links.take(A, 20, 20, 30, 2) == 20
    assert links.taken == {0: [(20, 50, 2)], 1: [(20, 50, 2), (50, 90, 1)], 2: [(50, 90, 1)]}
