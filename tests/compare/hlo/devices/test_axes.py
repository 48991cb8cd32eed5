"""Groups back to mesh axes."""

import pytest

from compare.hlo.devices.axes import Mesh, read_axes
from compare.hlo.text.errors import HloError


def mesh(**axes):
    return Mesh.of(axes, in_program=None, largest_id=0)


DP_TP = mesh(dp=2, tp=4)


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        (((0, 1, 2, 3), (4, 5, 6, 7)), "tp"),
        (((3, 1, 0, 2), (7, 5, 6, 4)), "tp"),  # the order in a group does not matter
        (((0, 4), (1, 5), (2, 6), (3, 7)), "dp"),
        (((0, 1, 2, 3, 4, 5, 6, 7),), "dp,tp"),
        (tuple((device,) for device in range(8)), ""),  # alone: no axis
        (((0, 1), (2, 3), (4, 5), (6, 7)), "tp:sub"),
        (((0, 3), (1, 2), (4, 7), (5, 6)), "tp:sub"),
        (((0, 1, 2), (3,), (4, 5, 6), (7,)), "tp:sub"),
        (((0, 5), (1, 6), (2, 7), (3, 4)), "?"),
        (((0, 1, 2, 3),), "?"),  # a whole axis, but devices are left out
        (((0, 1, 4, 5), (2, 3, 6, 7)), "?"),  # dp and half of tp
        (((0, 1), (2, 6), (3, 7), (4, 5)), "?"),  # inside different axes
        (((0, 9),), "?"),
    ],
)
def test_groups_are_the_smallest_set_of_axes_that_has_them(groups, axes):
    assert DP_TP.axes_of_groups(groups) == axes


def test_axes_of_size_one_never_appear():
    assert mesh(dp=1, pp=2, cp=1, ep=1, tp=2).axes_of_groups(((0, 1, 2, 3),)) == "pp,tp"
    assert mesh(a=1).axes_of_groups(((0,),)) == ""


def test_two_of_three_axes_are_found_and_named_outermost_first():
    assert mesh(a=2, b=2, c=2).axes_of_groups(((0, 1, 4, 5), (2, 3, 6, 7))) == "a,c"


@pytest.mark.parametrize(
    ("pairs", "axes"),
    [
        (((0, 1), (1, 2), (2, 3)), "tp"),
        (((0, 4), (4, 0)), "dp"),
        (((0, 4), (1, 2)), "dp,tp"),
        (((0, 5),), "dp,tp"),
        (((0, 1), (4, 4)), "tp"),  # a pair to itself moves nothing
        (((3, 3),), ""),
        ((), ""),
        (((0, 8),), "?"),
    ],
)
def test_a_permute_runs_over_the_axes_along_which_its_pairs_differ(pairs, axes):
    assert DP_TP.axes_of_pairs(pairs) == axes


def test_without_axes_nothing_is_named():
    unknown = Mesh.of({}, in_program=8, largest_id=0)
    assert unknown.axes_of_groups(((0, 1, 2, 3), (4, 5, 6, 7))) == "?"
    assert unknown.axes_of_pairs(((0, 1),)) == "?"


def test_the_axes_must_make_the_program_or_several_slices_of_it():
    assert Mesh.of({"dcn": 2, "tp": 8}, in_program=8, largest_id=0).num_devices == 16
    for axes in ({"tp": 6}, {"tp": 4}, {"a": 3, "b": 4}):
        with pytest.raises(HloError, match="8"):
            Mesh.of(axes, in_program=8, largest_id=0)


RING = ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4))


def test_a_ring_step_goes_once_around_every_group_of_one_axis():
    back = tuple((target, source) for source, target in RING)
    for at in (DP_TP, Mesh.of({}, in_program=8, largest_id=0)):
        assert at.is_ring_step(RING)
        assert at.is_ring_step(back)
        assert not at.is_ring_step(RING[:-1])  # open
        assert not at.is_ring_step(((0, 2), (2, 1), (1, 3), (3, 0), (4, 6), (6, 5), (5, 7), (7, 4)))  # not by one
    assert not DP_TP.is_ring_step(RING[:4])  # one group of two


def test_axes_are_read_in_their_order():
    assert list(read_axes("data=2, tensor=4").items()) == [("data", 2), ("tensor", 4)]
    assert read_axes(None) == {}
    for wrong in ("", "data", "data=", "data=0", "data=x", "=2", "a=2,a=2", "a=-1", "a=2,,b=2"):
        with pytest.raises(HloError, match="data=2,tensor=4"):
            read_axes(wrong)
