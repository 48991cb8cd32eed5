"""The links of the torus: which ones a set of messages uses, and the load of each.

A message goes along x, then y, then z, in the shorter direction of a ring; at half a ring, upwards from an even
coordinate and downwards from an odd one.  A link is one way: a pair of neighbours has two.  The devices of one chip
have a link of their own.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Self

import numpy as np

from compare.hlo.devices.groups import SLICE_UNIT
from compare.timeline.arrays import Floats, Ints, Mask
from meshes.assignment import assign_chips
from meshes.devices.topology import Place
from meshes.mesh_argument import Plan

SLOTS = 9
"""Links out of a chip: +x -x +y -y +z -z, between its devices up and down, and to the data centre's network."""
ON_CHIP, TO_NETWORK = 6, 8


@dataclass(frozen=True)
class Torus:
    """The place of each logical device, and which sides are wrapped."""

    places: tuple[Place, ...]
    sides: tuple[int, int, int]
    wraps: tuple[bool, ...]
    """Of the first sides; the others are not wrapped."""
    on_chip_weight: float = 1.0
    """Time of a byte between two devices of a chip ÷ time on a link of the torus."""

    @classmethod
    def of(cls, plan: Plan, *, on_chip_weight: float) -> Self:
        return cls(assign_chips(plan), plan.topology.sides, plan.topology.wraps, on_chip_weight)

    @cached_property
    def coordinates(self) -> Ints:
        """(devices, 3): coordinates."""
        return np.array([[place.x, place.y, place.z] for place in self.places], np.int64).reshape(-1, 3)

    @cached_property
    def chip(self) -> Ints:
        """Per device the number of its chip."""
        slices = np.array([place.slice_index for place in self.places], np.int64)
        return self._number(slices, self.coordinates)

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """Per device the runtime's id, in programs of several slices (see `compare.hlo.devices.groups`)."""
        x, y, _ = self.sides
        cores = 1 + int(self.core.max(initial=0))
        numbers = (
            (self.coordinates[:, 2] * y + self.coordinates[:, 1]) * x + self.coordinates[:, 0]
        ) * cores + self.core
        return tuple(
            (place.slice_index + 1) * SLICE_UNIT + int(number)
            for place, number in zip(self.places, numbers, strict=True)
        )

    @cached_property
    def core(self) -> Ints:
        return np.array([place.core for place in self.places], np.int64)

    def _number(self, slices: Ints, coordinates: Ints) -> Ints:
        _, y, z = self.sides
        return ((slices * self.sides[0] + coordinates[:, 0]) * y + coordinates[:, 1]) * z + coordinates[:, 2]

    def routes(self, source: Ints, target: Ints) -> "Routes":
        """The links on the route of each message."""
        current, target_coordinates = self.coordinates[source].copy(), self.coordinates[target]
        slices = self.chip[source] // int(np.prod(self.sides))
        messages, links = [], []
        for dim, (side, wraps) in enumerate(zip_longest(self.sides, self.wraps, fillvalue=False)):
            step, hops = _way(current[:, dim], target_coordinates[:, dim], side=side, wraps=wraps)
            for hop in range(int(hops.max(initial=0))):
                (going,) = np.nonzero(hops > hop)
                out = 2 * dim + (step[going] < 0)
                messages.append(going)
                links.append(self._number(slices[going], current[going]) * SLOTS + out)
                current[going, dim] = (current[going, dim] + step[going]) % side
        beside = (self.chip[source] == self.chip[target]) & (source != target)
        (inside,) = np.nonzero(beside)
        messages.append(inside)
        down = self.core[source[inside]] > self.core[target[inside]]
        links.append(self.chip[source[inside]] * SLOTS + ON_CHIP + down)
        return Routes(np.concatenate(messages), np.concatenate(links), source.size, self.on_chip_weight)


@dataclass(frozen=True)
class Routes:
    """Messages and their links, one entry per use."""

    message: Ints
    link: Ints
    num_messages: int
    on_chip_weight: float

    @cached_property
    def hops(self) -> Ints:
        """Number of torus links on the route of each message."""
        return np.bincount(self.message[~self._beside], minlength=self.num_messages)

    @cached_property
    def _beside(self) -> Mask:
        return np.greater_equal(self.link % SLOTS, ON_CHIP)

    def load(self, sizes: Floats) -> Floats:
        """For each message the load of the busiest link on its route, over all messages, in bytes on a torus link."""
        carried = np.bincount(self.link, weights=sizes[self.message]) if self.link.size else np.zeros(0)
        weighted = carried[self.link] * np.where(self._beside, self.on_chip_weight, 1.0)
        busiest = np.zeros(self.num_messages)
        np.maximum.at(busiest, self.message, weighted)
        return busiest


def _way(source: Ints, target: Ints, *, side: int, wraps: bool) -> tuple[Ints, Ints]:
    """(direction along one side, number of steps)."""
    ahead = target - source
    if wraps:
        ahead = ahead % side
        back = (ahead * 2 > side) | ((ahead * 2 == side) & (source % 2 == 1))
        ahead = np.where(back, ahead - side, ahead)
    return np.sign(ahead), np.abs(ahead)
