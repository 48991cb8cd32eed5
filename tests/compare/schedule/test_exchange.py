"""Which links a collective loads, and how much, counted by hand."""

import numpy as np
import pytest

from compare.schedule.compiler_algorithm import BLOCK, DIRECT, RING, Algorithm
from compare.schedule.exchange import route_collective
from compare.schedule.links import ON_CHIP, SLOTS, Torus
from compare.schedule.rings import find_ring
from meshes.devices.topology import Topology
from meshes.mesh_argument import read_mesh


def torus(name: str, on_chip_weight: float = 1.0) -> Torus:
    """Devices in the order of their coordinates."""
    shape = Topology.parse(name)
    return Torus(shape.places(), shape.sides, shape.wraps, on_chip_weight)


def load(kind, groups, where, algorithm=None):
    exchange = route_collective(kind, groups, where, algorithm or Algorithm(RING))
    return exchange.load.tolist(), exchange.hops.tolist()


LINE = torus("v5e:4x4")  # devices 0..3 are the first line; 4, 8, 12 stand beside 0
CLOSED = torus("v5e:16x16")


@pytest.mark.parametrize(
    ("kind", "share", "steps"),
    [("all-gather", 3 / 4, 3), ("reduce-scatter", 3 / 4, 3), ("all-reduce", 6 / 4, 6)],
)
def test_on_a_line_of_four_a_ring_goes_back_over_the_same_links(kind, share, steps):
    """Up the line one half, back through it the other: every link carries both, one way and the other."""
    assert load(kind, ((0, 1, 2, 3),), LINE) == ([share], [steps])


@pytest.mark.parametrize(
    ("kind", "share", "steps"),
    [("all-gather", 15 / 16 / 2, 15), ("reduce-scatter", 15 / 16 / 2, 15), ("all-reduce", 15 / 16, 30)],
)
def test_a_closed_ring_uses_both_directions(kind, share, steps):
    assert load(kind, (tuple(range(16)),), CLOSED) == ([share], [steps])


def test_two_neighbours_have_one_link():
    assert load("all-reduce", ((0, 1),), LINE) == ([1.0], [2.0])


def test_a_block_of_two_by_four_has_a_way_round():
    """Eight chips, each step to a neighbour, the last one too: half of what a line's links carry."""
    order = find_ring(range(8), torus("v5e:2x4"))
    at = torus("v5e:2x4").coordinates[list(order)]
    assert sorted(order) == list(range(8))
    assert (np.abs(at - np.roll(at, -1, axis=0)).sum(axis=1) == 1).all()
    assert load("all-reduce", (tuple(range(8)),), torus("v5e:2x4")) == ([7 / 8], [14.0])


@pytest.mark.parametrize("name", ["v5p:2x2x2", "v5p:4x4x4", "v5e:4x8", "v5p:2x2x4"])
def test_every_block_with_an_even_side_has_a_way_round(name):
    where = torus(name)
    order = find_ring(range(len(where.places)), where)
    at = where.coordinates[list(order)]
    assert sorted(order) == list(range(len(where.places)))
    assert (np.abs(at - np.roll(at, -1, axis=0)).sum(axis=1) == 1).all()


def test_groups_on_every_second_chip_of_a_line_share_its_links():
    """0→2 goes over 1, and 1→3 over 2: the link between 1 and 2 carries both."""
    pairs = ((0, 2), (1, 3))
    assert load("collective-permute", pairs, LINE) == ([2.0, 2.0], [2.0, 2.0])
    alone = load("collective-permute", pairs[:1], LINE)
    assert alone == ([1.0], [2.0])
    # All-reduces of {0, 2} and of {1, 3}: each link in the middle carries both.
    assert load("all-reduce", pairs, LINE)[0] == [2.0, 2.0]


def test_a_permute_goes_the_shorter_way_round():
    assert load("collective-permute", ((0, 15),), CLOSED)[1] == [1.0]
    assert load("collective-permute", ((0, 3),), LINE)[1] == [3.0]


def test_half_way_round_even_and_odd_places_go_different_ways():
    """On a ring of 4 everybody sends to its opposite: two messages of two links on each way, one on each link."""
    ring_of_4 = torus("v5p:4x4x4")
    pairs = ((0, 2), (1, 3), (2, 0), (3, 1))
    assert load("collective-permute", pairs, ring_of_4) == ([1.0] * 4, [2.0] * 4)


def test_an_all_to_all_on_a_line_is_held_up_by_its_middle():
    """Two chips on either side, each with a quarter for each of the other two: 4 quarters one way."""
    assert load("all-to-all", ((0, 1, 2, 3),), LINE, Algorithm(DIRECT)) == ([1.0], [3.0])


def test_a_block_in_two_orders_keeps_both_sides_busy():
    """4 x 4, half of the data either order: 2·1/2·3/4 on every line, then a quarter of that."""
    algorithm = Algorithm(BLOCK, orders=((0, 1), (1, 0)))
    assert load("all-reduce", (tuple(range(16)),), LINE, algorithm) == ([3 / 4 + 3 / 16], [12.0])
    assert load("reduce-scatter", (tuple(range(16)),), LINE, algorithm) == ([3 / 8 + 3 / 32], [6.0])
    assert load("all-gather", (tuple(range(16)),), LINE, algorithm) == ([3 / 8 + 3 / 32], [6.0])


def test_a_block_in_one_order_leaves_a_side_idle():
    algorithm = Algorithm(BLOCK, orders=((0, 1),))
    assert load("all-reduce", (tuple(range(16)),), LINE, algorithm)[0] == [6 / 4 + 6 / 16]


def test_the_compilers_sides_are_told_by_their_sizes():
    """On 4 x 8 (x = 4, y = 8) its side 0 is the one of 8: first 2·7/8 on those lines, then 2·3/4 of an eighth."""
    where = torus("v5e:4x8")
    algorithm = Algorithm(BLOCK, orders=((0, 1),), sizes=((0, 8), (1, 4)))
    assert load("all-reduce", (tuple(range(32)),), where, algorithm)[0] == [14 / 8 + 6 / 4 / 8]
    named = Algorithm(BLOCK, orders=((0, 1),))
    assert load("all-reduce", (tuple(range(32)),), where, named)[0] == [6 / 4 + 14 / 8 / 4]


def test_a_sum_at_once_sends_everything_round_in_half_the_steps():
    """Four chips on a line: three operands pass each link, of which half goes either way round."""
    assert load("all-reduce", ((0, 1, 2, 3),), LINE, Algorithm(RING, one_shot=(True,))) == ([3.0], [2.0])


def test_phases_can_differ():
    """First in steps over x (2·3/4, 6 steps), then at once over y: 3 times the quarter that is left, in 2 steps."""
    algorithm = Algorithm(BLOCK, orders=((0, 1),), one_shot=(False, True))
    assert load("all-reduce", (tuple(range(16)),), LINE, algorithm) == ([6 / 4 + 3 / 4], [8.0])


def test_the_devices_of_a_chip_talk_beside_the_torus():
    """v4: two devices a chip.  A pair on one chip uses no link of the torus."""
    where = torus("v4:2x2x1", on_chip_weight=0.5)
    assert load("collective-permute", ((0, 1),), where) == ([0.5], [0.0])
    exchange = route_collective("all-reduce", ((0, 1),), where, Algorithm(RING))
    assert (exchange.load.tolist(), exchange.uses) == ([0.5], (frozenset({ON_CHIP, ON_CHIP + 1}),))


def test_a_group_on_chips_with_two_devices_passes_each_link_once_a_way():
    """8 devices on 4 chips in a ring: 7/8 over every step, on the chips and between them, either way."""
    assert load("all-reduce", (tuple(range(8)),), torus("v4:2x2x1", on_chip_weight=0.1))[0] == [7 / 8]


def test_a_group_that_is_no_block_keeps_its_order():
    assert find_ring((0, 5, 2), LINE) == (0, 5, 2)
    blocky = route_collective("all-reduce", ((0, 5, 2),), LINE, Algorithm(BLOCK))
    assert blocky.load.tolist() == route_collective("all-reduce", ((0, 5, 2),), LINE, Algorithm(RING)).load.tolist()


def test_a_group_uses_the_ways_out_of_its_own_chips_only():
    """0→2 leaves chip 0 and passes chip 1, which is not its own."""
    exchange = route_collective("collective-permute", ((0, 2),), LINE, Algorithm(DIRECT))
    out_along_y = 2
    assert exchange.uses == (frozenset({0 * SLOTS + out_along_y}),)


def test_devices_sit_where_the_plan_puts_them():
    plan = read_mesh("tp4pp2")
    where = Torus.of(plan, on_chip_weight=1.0)
    assert where.wraps == (False, False)
    assert [tuple(at) for at in where.coordinates[:4].tolist()] == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 3, 0)]
    assert (where.coordinates[4:] - where.coordinates[:4]).tolist() == [[1, 0, 0]] * 4


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        # As libtpu lists them: x fastest, and before it the cores of a chip.
        ("2xv5e:2x2", [100_000, 100_002, 100_001, 100_003, 200_000, 200_002, 200_001, 200_003]),
        ("2xv4:1x2x1", [100_000, 100_001, 100_002, 100_003, 200_000, 200_001, 200_002, 200_003]),
    ],
)
def test_devices_of_several_slices_are_called_as_the_runtime_calls_them(name, ids):
    assert list(torus(name).ids) == ids
