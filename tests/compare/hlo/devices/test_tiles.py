"""Which tile each device holds, worked out by hand."""

import pytest

from compare.hlo.devices.tiles import is_split_over, read_tiles, spell_split
from compare.hlo.text.errors import HloError

AXES = {"data": 2, "tensor": 4}


@pytest.mark.parametrize(
    ("sharding", "tiles", "split"),
    [
        ("{devices=[2,4]<=[8]}", (0, 1, 2, 3, 4, 5, 6, 7), {"data", "tensor"}),
        ("{devices=[2,4]0,1,2,3,4,5,6,7}", (0, 1, 2, 3, 4, 5, 6, 7), {"data", "tensor"}),
        # Devices 0 and 4, 1 and 5 … hold the same: tensor's parts.
        ("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", (0, 1, 2, 3, 0, 1, 2, 3), {"tensor"}),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", (0, 0, 0, 0, 1, 1, 1, 1), {"data"}),
        ("{mesh['data'=2,'tensor'=4], [{'tensor'}, {}]}", (0, 1, 2, 3, 0, 1, 2, 3), {"tensor"}),
        ("{mesh['data'=2,'tensor'=4], [{}, {'tensor', 'data'}]}", (0, 1, 2, 3, 4, 5, 6, 7), {"data", "tensor"}),
        # Two parts over neighbours inside tensor: no member of data holds another, and not all of tensor's do.
        ("{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", (0, 1, 0, 1, 0, 1, 0, 1), set()),
        ("{replicated}", None, set()),
        ("{maximal device=3}", None, set()),
        ("{mesh['data'=2,'tensor'=4], [{'tensor':(1)2}]}", None, set()),
        ("", None, set()),
    ],
)
def test_a_sharding_says_who_holds_what(sharding, tiles, split):
    read = read_tiles(sharding)
    assert read == tiles
    assert {axis for axis in AXES if is_split_over(read, axis, axes=AXES)} == split


@pytest.mark.parametrize(
    ("sharding", "split"),
    [
        ("{devices=[2,4]<=[8]}", "[data, tensor]"),
        ("{devices=[4,2]<=[2,4]T(1,0)}", "[tensor, data]"),
        ("{devices=[1,8]<=[8]}", "[-, data·tensor]"),
        ("{devices=[8,1]<=[2,4]T(1,0)}", "[tensor·data, -]"),
        ("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", "[-, tensor]"),
        ("{devices=[1,8]0,1,2,3,4,5,6,7}", "[-, data·tensor]"),
        # Pairs inside tensor have no name of their own.
        (
            "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
            "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
        ),
        ("{replicated}", "{replicated}"),
        ("{devices=[2,2]<=[4]}", "{devices=[2,2]<=[4]}"),
        (f"{{devices=[8{',1' * 70}]<=[8]}}", f"{{devices=[8{',1' * 70}]<=[8]}}"),
    ],
)
def test_a_split_is_spelled_in_axes(sharding, split):
    assert spell_split(sharding, axes=AXES) == split


@pytest.mark.parametrize(
    "sharding",
    [
        "{devices=[2,3]<=[8]}",
        "{devices=[2,4]<=[99999999999]}",
        "{devices=[2,4]<=[2,4]T(0,0)}",
        "{devices=[2]0,0}",
        "{devices=[99999999,99999999]<=[8]}",
        "{mesh['data'=2], [{'tensor'}]}",
    ],
)
def test_one_that_cannot_be_is_refused(sharding):
    with pytest.raises(HloError, match="sharding"):
        read_tiles(sharding)


def test_a_sharding_of_other_devices_splits_no_axis():
    assert not is_split_over(read_tiles("{devices=[4]<=[4]}"), "tensor", axes=AXES)
