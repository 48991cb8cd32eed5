"""Slices of chips, and which chip each logical device is."""

from itertools import pairwise

import pytest

from meshes.assignment import assign_chips, crossing_axes, network_of
from meshes.devices.generations import GENERATIONS
from meshes.devices.topology import Topology
from meshes.mesh_argument import read_mesh
from meshes.process.errors import MeshError


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


MESHES = [
    "tp8",
    "tp4pp2",
    "dp2tp4",
    "pp4tp2",
    "dp2pp2tp2",
    "tp8@v5p:2x2x2",
    "tp8@v4:2x2x1",
    "dp2tp8@2xv5e:2x4",
    "dp16tp16",
    "tp8pp4@v5p:2x4x4",
    "dp4tp2@v6e:2x4",
]


@pytest.mark.parametrize("name", MESHES)
def test_every_device_has_one_chip_and_every_chip_its_devices(name):
    plan = read_mesh(name)
    assert sorted(assign_chips(plan)) == sorted(plan.topology.places())


@pytest.mark.parametrize("name", MESHES)
def test_members_of_a_tp_group_are_neighbours(name):
    plan = read_mesh(name)
    places = assign_chips(plan)
    for group in plan.mesh.groups("tp"):
        for a, b in pairwise(group):
            assert places[a].slice_index == places[b].slice_index
            assert steps(places[a], places[b]) <= 1


@pytest.mark.parametrize(
    ("name", "over", "slices"),
    [
        ("dp2tp8@2xv5e:2x4", {"dp": 2}, [0] * 8 + [1] * 8),
        ("pp2tp8@2xv5e:2x4", {"pp": 2}, [0] * 8 + [1] * 8),
        ("tp16@2xv5e:2x4", {"tp": 2}, [0] * 8 + [1] * 8),
        # Two halves of dp over slices, two replicas on each.
        ("dp4tp4@2xv5e:2x4", {"dp": 2}, [0] * 8 + [1] * 8),
        # Four slices: dp takes two of them, pp two for each replica, and two stages are on each.
        ("dp2pp4tp2@4xv5e:2x2", {"dp": 2, "pp": 2}, [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4),
        ("tp8", {}, [0] * 8),
    ],
)
def test_the_outermost_axes_cross_slices_the_last_of_them_perhaps_in_part(name, over, slices):
    plan = read_mesh(name)
    assert crossing_axes(plan) == over
    assert [place.slice_index for place in assign_chips(plan)] == slices


def test_an_axis_over_slices_has_equal_chips_on_each():
    """So that what is exchanged between slices is between chips of one place, as in JAX's hybrid meshes."""
    plan = read_mesh("dp4tp4@2xv5e:2x4")
    places = assign_chips(plan)
    for first, two, three, four in plan.mesh.groups("dp"):
        assert (places[first].slice_index, places[two].slice_index) == (0, 0)
        assert places[first][1:] == places[three][1:]
        assert places[two][1:] == places[four][1:]


@pytest.mark.parametrize(
    ("name", "networks"),
    [
        ("dp4tp4@2xv5e:2x4", {"dp": "ici+dcn", "tp": "ici", "dp,tp": "ici+dcn"}),
        ("dp2tp8@2xv5e:2x4", {"dp": "dcn", "tp": "ici", "pp": "ici"}),
        ("dp2tp4", {"dp": "ici"}),
    ],
)
def test_axes_talk_within_slices_between_them_or_both(name, networks):
    assert {axes: network_of(read_mesh(name), axes) for axes in networks} == networks


def test_another_order_sends_another_axis_over_the_slices(tmp_path):
    path = tmp_path / "stages.toml"
    path.write_text(
        'axes = { dp = 2, pp = 2, tp = 4 }\ntopology = "2xv5e:2x4"\norder = ["pp", "cp", "ep", "dp", "tp"]\n'
    )
    plan = read_mesh(str(path))
    assert crossing_axes(plan) == {"pp": 2}
    assert [place.slice_index for place in assign_chips(plan)] == ([0] * 4 + [1] * 4) * 2


def test_axes_that_slices_do_not_divide_are_refused():
    with pytest.raises(MeshError, match=r"dp2tp24 cannot be laid over 3 slices: dp2 neither divides 3 .* 'dp3tp16'"):
        assign_chips(read_mesh("dp2tp24@3xv5e:4x4"))


def test_the_order_of_a_spec_file_moves_chips_and_no_ids():
    near_tp, near_dp = read_mesh("dp8tp2@v6e:4x4"), read_mesh("dp8tp2-data-close.toml")
    assert near_tp.mesh == near_dp.mesh
    places = assign_chips(near_dp)
    for group in near_dp.mesh.groups("dp"):
        assert all(steps(places[a], places[b]) == 1 for a, b in pairwise(group))
    assert assign_chips(near_tp) != places
