"""Slices of chips, and which chip each logical device is."""

from itertools import pairwise

import pytest

from meshes.assignment import chips
from meshes.errors import MeshError
from meshes.files import read_mesh
from meshes.generations import GENERATIONS
from meshes.topology import Topology


def steps(a, b):
    """Links between two chips of a slice that does not wrap."""
    return abs(a.x - b.x) + abs(a.y - b.y) + abs(a.z - b.z)


@pytest.mark.parametrize(
    ("name", "devices", "slices"),
    [("v5e:2x4", 8, 1), ("v5p:4x4x8", 128, 1), ("2xv5e:4x4", 32, 2), ("v4:2x2x2", 16, 1), ("tpu7x:2x2x1", 8, 1)],
)
def test_a_topology_reads_as_written(name, devices, slices):
    topology = Topology.parse(name)
    assert (topology.name, topology.num_devices, topology.slices) == (name, devices, slices)
    assert len(set(topology.places())) == devices


@pytest.mark.parametrize(
    "name", ["v5e", "v5e:", "v5e:3x3", "v5e:2x4x2", "v9:2x2", "0xv5e:2x2", "v5p:6x4x4", "v5e:32x32"]
)
def test_a_slice_that_is_not_made_is_refused(name):
    with pytest.raises(MeshError):
        Topology.parse(name)


def test_the_smallest_slice_is_filled():
    assert Topology.smallest(8).name == "v5e:2x4"
    assert Topology.smallest(256).name == "v5e:16x16"
    with pytest.raises(MeshError, match="no single v5e slice has 6 devices"):
        Topology.smallest(6)


def test_a_side_closes_into_a_ring_by_the_rule_of_its_generation():
    v5e, v5p = GENERATIONS["v5e"], GENERATIONS["v5p"]
    assert v5e.wraps((8, 16)) == (False, True)
    assert v5p.wraps((4, 4, 8)) == (True, True, True)
    assert v5p.wraps((2, 4, 4)) == (False, False, False)  # no full cube


MESHES = ["tp8", "tp4pp2", "dp2tp4", "pp4tp2", "dp2pp2tp2", "tp8@v5p:2x2x2", "tp8@v4:2x2x1", "dp2tp8@2xv5e:2x4",
          "dp16tp16", "tp8pp4@v5p:2x4x4", "dp4tp2@v6e:2x4"]  # fmt: skip


@pytest.mark.parametrize("name", MESHES)
def test_every_device_has_one_chip_and_every_chip_its_devices(name):
    plan = read_mesh(name)
    assert sorted(chips(plan)) == sorted(plan.topology.places())


@pytest.mark.parametrize("name", MESHES)
def test_members_of_a_tp_group_are_neighbours(name):
    plan = read_mesh(name)
    places = chips(plan)
    for group in plan.mesh.groups("tp"):
        for a, b in pairwise(group):
            assert places[a].slice_index == places[b].slice_index
            assert steps(places[a], places[b]) <= 1


def test_only_the_outermost_axes_cross_slices():
    plan = read_mesh("dp2tp8@2xv5e:2x4")
    assert [place.slice_index for place in chips(plan)] == [0] * 8 + [1] * 8
    with pytest.raises(MeshError, match="cannot be laid over 2 slices"):
        chips(read_mesh("tp16@2xv5e:2x4"))


def test_the_order_of_a_spec_file_moves_chips_and_no_ids():
    near_tp, near_dp = read_mesh("dp8tp2@v6e:4x4"), read_mesh("dp8tp2-data-close.toml")
    assert near_tp.mesh == near_dp.mesh
    places = chips(near_dp)
    for group in near_dp.mesh.groups("dp"):
        assert all(steps(places[a], places[b]) == 1 for a, b in pairwise(group))
    assert chips(near_tp) != places
