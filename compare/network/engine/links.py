"""The links of a machine, numbered, and the routes of messages over them.

A message goes through the dims in order, in each the shorter way; half way round a ring upwards.
Every link is one way and belongs to a rank: link = rank × `slots` + slot.

| dim | slots of a rank |
|---|---|
| ring, line | to the next coordinate; to the one before |
| switch | up to the switch; down from it |
| fully-connected | one to each distance, modulo the size (the first is never used) |
"""

from dataclasses import dataclass

import numpy as np

from compare.network.machines.kinds import FULLY_CONNECTED, LINE, RING, SWITCH
from compare.network.machines.machine import Dim, Machine
from compare.timeline.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Routes:
    """Messages and the links on their ways, one entry for each use."""

    message: Ints
    link: Ints
    num_messages: int

    def loads(self, num_bytes: Floats, links: "Links") -> Floats:
        """Bytes on each link, if all messages are sent at once."""
        return np.bincount(self.link, weights=num_bytes[self.message], minlength=links.count).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """All links of a machine."""

    machine: Machine
    slots: int
    """Of a rank, over all dims."""
    first_slots: tuple[int, ...]
    """The first slot of each dim."""
    slot_dim: Ints
    """(slots,): the dim of each slot."""
    rates: Floats
    """(slots,): bytes a ns."""
    latencies: Floats
    """(slots,): ns of one hop."""

    @classmethod
    def of(cls, machine: Machine) -> "Links":
        sizes = [dim.size if dim.kind == FULLY_CONNECTED else 2 for dim in machine.dims]
        return cls(
            machine,
            sum(sizes),
            tuple(int(first) for first in np.cumsum([0, *sizes])[:-1]),
            np.repeat(np.arange(len(sizes)), sizes),
            np.repeat([dim.bytes_per_ns for dim in machine.dims], sizes).astype(np.float64),
            np.repeat([dim.latency_ns for dim in machine.dims], sizes).astype(np.float64),
        )

    @property
    def count(self) -> int:
        return self.machine.num_ranks * self.slots

    def route(self, source: Ints, target: Ints) -> Routes:
        """The links of each message, in the order of its way."""
        here = source.copy()
        messages: list[Ints] = []
        links: list[Ints] = []
        for index, dim in enumerate(self.machine.dims):
            stride = self.machine.stride(index)
            coordinate = here // stride % dim.size
            wanted = target // stride % dim.size
            self._cross(dim, index, stride, here, coordinate, wanted, messages, links)
            here = here + (wanted - coordinate) * stride
        if not messages:
            return Routes(np.zeros(0, np.int64), np.zeros(0, np.int64), source.size)
        message = np.concatenate(messages)
        order = np.argsort(message, kind="stable")
        return Routes(message[order], np.concatenate(links)[order], source.size)

    def _cross(
        self,
        dim: Dim,
        index: int,
        stride: int,
        here: Ints,
        coordinate: Ints,
        wanted: Ints,
        messages: list[Ints],
        links: list[Ints],
    ) -> None:
        """Adds the links of one dim."""
        slot = self.first_slots[index]
        (moving,) = np.nonzero(coordinate != wanted)
        if not moving.size:
            return
        there = here + (wanted - coordinate) * stride
        if dim.kind == SWITCH:
            messages += [moving, moving]
            links += [here[moving] * self.slots + slot, there[moving] * self.slots + slot + 1]
        elif dim.kind == FULLY_CONNECTED:
            messages.append(moving)
            distance = (wanted - coordinate)[moving] % dim.size
            links.append(here[moving] * self.slots + slot + distance)
        else:
            step, hops = way_along(dim, coordinate, wanted)
            for hop in range(int(hops.max(initial=0))):
                (going,) = np.nonzero(hops > hop)
                at = (coordinate[going] + step[going] * hop) % dim.size
                rank = here[going] + (at - coordinate[going]) * stride
                messages.append(going)
                links.append(rank * self.slots + slot + (step[going] < 0))


def way_along(dim: Dim, coordinate: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """(direction, hops) of each message along a ring or a line."""
    assert dim.kind in (RING, LINE)
    ahead = wanted - coordinate
    if dim.kind == RING:
        ahead = ahead % dim.size
        ahead = np.where(2 * ahead <= dim.size, ahead, ahead - dim.size)
    return np.sign(ahead), np.abs(ahead)
