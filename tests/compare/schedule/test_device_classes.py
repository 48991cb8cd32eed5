"""Which devices are alike."""

from itertools import combinations

import numpy as np
import pytest

from compare.schedule import schedule
from compare.schedule.class_collectives import (
    AlikeGroups,
    ClassCollective,
    CollectiveCost,
    relate_chips,
    relate_devices,
)
from compare.schedule.device_classes import Classes, group_devices, number_rows
from compare.schedule.hardware import Hardware
from compare.schedule.links import SLOTS, Torus
from compare.schedule.schedule import simulate_module
from meshes.devices.generations import generation
from meshes.devices.topology import Topology
from tests.compare.network.graph.test_expand import PROGRAMS, load


def torus(name="v5e:2x4"):
    shape = Topology.parse(name)
    return Torus(shape.places(), shape.sides, (False, False, False))


def meeting(groups, *, pairs=False, moving=None, uses=None):
    times = np.ones(len(groups)) if moving is None else np.array(moving, float)
    return CollectiveCost(groups, pairs, np.zeros(len(groups)), times, uses or (frozenset(),) * len(groups))


def group(where, costs, taken=None):
    alone = np.zeros(len(where.places)) if taken is None else np.array(taken)
    return group_devices(alone, [relate_chips(where), *(relate_devices(cost, where) for cost in costs)])


HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))


def test_devices_that_do_the_same_are_one_class():
    devices = group(torus(), [meeting(HALVES)])
    assert (devices.count, devices.members(0)) == (1, tuple(range(8)))


def test_groups_that_take_longer_are_told_apart():
    devices = group(torus(), [meeting(HALVES, moving=[1, 2])])
    assert [devices.members(number) for number in range(devices.count)] == list(HALVES)


def test_a_pipeline_is_told_apart_stage_by_stage():
    """The first only sends, the last only hears; the second hears from the first, the third from the second."""
    pairs = ((0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7))
    devices = group(torus(), [meeting(pairs, pairs=True)])
    assert [devices.members(number) for number in range(devices.count)] == [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_a_ring_of_stages_is_one_class():
    pairs = tuple((at, (at + 1) % 8) for at in range(8))
    assert group(torus(), [meeting(pairs, pairs=True)]).count == 1


def test_branches_tell_apart_and_so_does_meeting_the_other():
    """Device 0 takes another branch; its group meets it, the other group does not."""
    devices = group(torus(), [meeting(HALVES)], [1, 0, 0, 0, 0, 0, 0, 0])
    assert [devices.members(number) for number in range(devices.count)] == [(0,), (1, 2, 3), (4, 5, 6, 7)]


def test_the_same_pairs_of_two_permutes_are_not_alike():
    """0 sends to 4 in one permute, 1 to 5 in another: neither is in the other's."""
    devices = group(torus(), [meeting(((0, 4),), pairs=True), meeting(((1, 5),), pairs=True)])
    assert [devices.members(number) for number in range(devices.count)] == [(0,), (1,), (2, 3, 6, 7), (4,), (5,)]


def test_the_two_devices_of_a_chip_are_alike_if_they_do_the_same():
    where = torus("v4:2x2x1")
    assert group(where, []).count == 1
    first_cores = tuple(range(0, 8, 2))
    assert group(where, [meeting((first_cores,))]).count == 2


def test_groups_of_different_sizes_and_devices_outside_all():
    devices = group(torus(), [meeting(((0, 1), (2, 3, 4)))])
    assert [devices.members(number) for number in range(devices.count)] == [(0, 1), (2, 3, 4), (5, 6, 7)]


def test_a_rendezvous_lists_each_kind_of_group_once():
    pairs = ((0, 4), (1, 5), (2, 6), (3, 7))
    rendezvous = meeting(pairs, pairs=True, uses=tuple(frozenset({at * SLOTS}) for at in range(4)))
    devices = group(torus(), [rendezvous])
    class_collective = ClassCollective.of(rendezvous, relate_devices(rendezvous, torus()), devices, torus())
    assert class_collective.groups == (AlikeGroups((0, 1), 0.0, 1.0, frozenset({0})),)
    assert class_collective.groups_of == {0: (0,), 1: (0,)}


@pytest.mark.parametrize("rows", [
    np.array([[0.0, 1.5], [-0.0, 1.5], [1.5, 0.0], [0.0, 1.5]]),
    np.array([[3], [-1], [3], [2]]),
    np.array([7, 7, 9, 2**64 - 1], np.uint64),
    np.arange(24.0).reshape(2, 12)[[0, 1, 1, 0]].T.copy().T,
    np.zeros((3, 0)),
])  # fmt: skip
def test_rows_have_one_number_where_they_are_equal(rows):
    numbers = number_rows(rows).tolist()
    pairs = list(combinations(range(len(rows)), 2))
    assert [numbers[a] == numbers[b] for a, b in pairs] == [bool((rows[a] == rows[b]).all()) for a, b in pairs]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_class_has_the_times_that_its_devices_have_one_by_one(name, monkeypatch):
    _, module, rows, torus, slices = load(name)
    size = len(torus.places)

    def list_times():
        simulated = simulate_module(module, rows, torus, hardware=Hardware.of(generation("v5e")), slices=slices)
        of = simulated.step.classes.of
        return np.array([[at.begun[of], at.ready[of], at.end[of]] for at in simulated.times])

    by_class = list_times()
    alone = Classes(np.arange(size), np.arange(size))
    monkeypatch.setattr(schedule, "group_devices", lambda *_: alone)
    np.testing.assert_allclose(by_class, list_times(), rtol=0, atol=1e-6)
