"""The five spellings of device groups, resolved by hand."""

import pytest

from compare.hlo.devices.groups import read_groups, read_pairs
from compare.hlo.text.errors import HloError

SPELLED = [
    ("{{0,1},{2,3}}", [[0, 1], [2, 3]]),
    ("{{0, 1, 2}, {3}}", [[0, 1, 2], [3]]),
    ("[2,4]<=[8]", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    # 2x2x2 turned inside out: the first dim varies fastest.
    ("[4,2]<=[2,2,2]T(2,1,0)", [[0, 4], [2, 6], [1, 5], [3, 7]]),
    ("[4,2]<=[2,4]T(1,0)", [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ("mesh['axis_0'=2,'axis_1'=4] {'axis_1'}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ("mesh['axis_0'=2,'axis_1'=4] {'axis_0'}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ("mesh['data'=2,'tensor'=2,'x'=2] {'x','data'}", [[0, 4, 1, 5], [2, 6, 3, 7]]),
    # Device ids 0 4 1 5 2 6 3 7 fill the mesh 4x2 row by row.
    ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ("mesh['a'=2,'b'=2], device_ids=(0,3,2,1) {'b'}", [[0, 3], [2, 1]]),
    # An axis of 8 is cut into 2 x 2 x 2: (1)2 is the outermost, (2)2 the middle, (4)2 the innermost part.
    ("mesh['a'=8] {'a':(1)2}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ("mesh['a'=8] {'a':(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
    ("mesh['a'=8] {'a':(4)2}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ("mesh['a'=8] {'a':(1)2,'a':(4)2}", [[0, 1, 4, 5], [2, 3, 6, 7]]),
    ("mesh['a'=4,'b'=2] {'a':(2)2,'b'}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ("mesh['a'=2,'b'=2] {}", [[0], [1], [2], [3]]),
    ("{}", []),
]


@pytest.mark.parametrize(("text", "groups"), SPELLED)
def test_every_spelling_becomes_explicit_groups(text, groups):
    assert [list(group) for group in read_groups(text)] == groups


@pytest.mark.parametrize(
    "text",
    [
        "{{0,1},{1,2}}",
        "{{0,1 2,3}}",
        "[2,4]<=[9]",
        "[2,4]<=[2,4]T(0,0)",
        "mesh['a'=2] {'b'}",
        "mesh['a'=4] {'a','a'}",
        "mesh['a'=2,'b'=2], device_ids=([2,4]) {'a'}",
        "mesh['a'=8] {'a':(3)2}",
        "maximal_mesh[device_id=1] {}",
        "every one",
        "{{0,1},{2,3}",
    ],
)
def test_a_spelling_that_cannot_be_is_refused(text):
    with pytest.raises(HloError):
        read_groups(text)


def test_pairs_are_sources_and_targets():
    assert read_pairs("{{0,1},{1,0},{2,2}}") == ((0, 1), (1, 0), (2, 2))
    assert read_pairs("{}") == ()
    with pytest.raises(HloError):
        read_pairs("{{0,1,2}}")
