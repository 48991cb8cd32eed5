"""Rings through the devices of a group: successive devices are neighbours on the torus."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.schedule.links import Torus

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A group whose chips are all combinations of some coordinates, with equally many devices per chip."""

    torus: Torus
    chips: tuple[Order, ...]
    """The devices of each chip, in order of core."""
    values: tuple[Order, ...]
    """The coordinates along x, y and z."""

    @classmethod
    def of(cls, group: Sequence[int], torus: Torus) -> "Block | None":
        """`None` where the group is no block."""
        rows: dict[int, list[int]] = {}
        for device in sorted(group, key=lambda device: (int(torus.chip[device]), int(torus.core[device]))):
            rows.setdefault(int(torus.chip[device]), []).append(device)
        coordinates = np.array([torus.coordinates[members[0]] for members in rows.values()])
        values = tuple(tuple(sorted(set(coordinates[:, dim].tolist()))) for dim in range(3))
        full = int(np.prod([len(value) for value in values])) == len(rows)
        alike = len({len(members) for members in rows.values()}) == 1
        return cls(torus, tuple(map(tuple, rows.values())), values) if full and alike else None

    @property
    def sides(self) -> Order:
        """The sides with more than one coordinate."""
        return tuple(dim for dim in range(3) if len(self.values[dim]) > 1)

    def size(self, side: int) -> int:
        """Chips along a side."""
        return len(self.values[side])

    def ring(self) -> Order:
        """A ring through all devices, each step to a neighbour where the block allows it.

        Along one side it goes up and, without a link between the ends, back through the line.  Over several it snakes
        through all sides but one, and returns along that one.
        """
        sides = self.sides
        by_place = {tuple(int(self.torus.coordinates[row[0]][side]) for side in sides): row for row in self.chips}
        places = _cycle([self.size(side) for side in sides])
        coordinates = (
            tuple(self.values[side][index] for side, index in zip(sides, place, strict=True)) for place in places
        )
        return tuple(device for place in coordinates for device in by_place[place])

    def lines(self, side: int, *, with_cores: bool) -> list[Order]:
        """The lines along a side; the devices of a chip are on one line (`with_cores`), or each on its own."""
        others = [dim for dim in self.sides if dim != side]
        along: dict[Order, list[int]] = {}
        for row in self.chips:
            for device in row:
                coordinates = self.torus.coordinates[device]
                core = 0 if with_cores else int(self.torus.core[device])
                along.setdefault((core, *(int(coordinates[dim]) for dim in others)), []).append(device)
        return [
            tuple(sorted(line, key=lambda device: (int(self.torus.coordinates[device][side]), device)))
            for line in along.values()
        ]


def find_ring(group: Sequence[int], torus: Torus) -> Order:
    """A ring through all devices of a group; a group that is no block keeps its order."""
    block = Block.of(group, torus)
    return tuple(group) if block is None else block.ring()


def _cycle(sizes: Sequence[int]) -> list[Order]:
    """The places of a block in an order in which each step, including the last to the first, is to a neighbour if
    possible."""
    if not sizes:
        return [()]
    if len(sizes) == 1:
        return [(index,) for index in range(sizes[0])]
    even = next((dim for dim, size in enumerate(sizes) if size % 2 == 0), 0)
    rest = [size for dim, size in enumerate(sizes) if dim != even]
    path = _snake(rest)
    first, back = path[0], path[1:]
    order = [(row, place) for row in range(sizes[even]) for place in (back if row % 2 == 0 else back[::-1])]
    order += [(row, first) for row in reversed(range(sizes[even]))]
    return [(*place[:even], row, *place[even:]) for row, place in order]


def _snake(sizes: Sequence[int]) -> list[Order]:
    """A path through a block in steps of one."""
    if not sizes:
        return [()]
    inner = _snake(sizes[1:])
    return [(index, *place) for index in range(sizes[0]) for place in (inner if index % 2 == 0 else inner[::-1])]
