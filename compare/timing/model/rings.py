"""In which order the devices of a group pass data on: neighbours on the torus follow each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.timing.model.links import Torus

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A group whose chips fill all combinations of some coordinates, each chip with equally many of its devices."""

    torus: Torus
    chips: tuple[Order, ...]
    """The members by chip, each chip's by core."""
    values: tuple[Order, ...]
    """The coordinates that occur, of x, y and z."""

    @classmethod
    def of(cls, group: Sequence[int], torus: Torus) -> "Block | None":
        """None where the group is no block."""
        rows: dict[int, list[int]] = {}
        for device in sorted(group, key=lambda one: (int(torus.chip[one]), int(torus.core[one]))):
            rows.setdefault(int(torus.chip[device]), []).append(device)
        at = np.array([torus.at[members[0]] for members in rows.values()])
        values = tuple(tuple(sorted(set(at[:, dim].tolist()))) for dim in range(3))
        full = int(np.prod([len(value) for value in values])) == len(rows)
        alike = len({len(members) for members in rows.values()}) == 1
        return cls(torus, tuple(map(tuple, rows.values())), values) if full and alike else None

    @property
    def sides(self) -> Order:
        """The sides that it spans."""
        return tuple(dim for dim in range(3) if len(self.values[dim]) > 1)

    def size(self, side: int) -> int:
        """Chips along a side."""
        return len(self.values[side])

    def ring(self) -> Order:
        """A closed way through all devices: each step to a neighbour, where the block has such a way.

        Along one side it goes up and, without a link between the ends, back through the whole line.  Through more it
        winds over all sides but one, and comes back along that one.
        """
        sides = self.sides
        by_place = {tuple(int(self.torus.at[row[0]][side]) for side in sides): row for row in self.chips}
        places = _cycle([self.size(side) for side in sides])
        where = (tuple(self.values[side][at] for side, at in zip(sides, place, strict=True)) for place in places)
        return tuple(device for place in where for device in by_place[place])

    def lines(self, side: int, *, with_cores: bool) -> list[Order]:
        """The lines along a side; the devices of a chip follow each other on one, or each is on a line of its own."""
        others = [dim for dim in self.sides if dim != side]
        along: dict[Order, list[int]] = {}
        for row in self.chips:
            for member in row:
                at = self.torus.at[member]
                core = 0 if with_cores else int(self.torus.core[member])
                along.setdefault((core, *(int(at[dim]) for dim in others)), []).append(member)
        return [tuple(sorted(line, key=lambda one: (int(self.torus.at[one][side]), one))) for line in along.values()]


def find_ring(group: Sequence[int], torus: Torus) -> Order:
    """A closed way through all devices of a group; one that is no block keeps its own order."""
    block = Block.of(group, torus)
    return tuple(group) if block is None else block.ring()


def _cycle(sizes: Sequence[int]) -> list[Order]:
    """Places of a block in an order in which each step, and that back to the start, is to a neighbour if it can be."""
    if not sizes:
        return [()]
    if len(sizes) == 1:
        return [(at,) for at in range(sizes[0])]
    even = next((dim for dim, size in enumerate(sizes) if size % 2 == 0), 0)
    rest = [size for dim, size in enumerate(sizes) if dim != even]
    path = _snake(rest)
    first, back = path[0], path[1:]
    order = [(row, place) for row in range(sizes[even]) for place in (back if row % 2 == 0 else back[::-1])]
    order += [(row, first) for row in reversed(range(sizes[even]))]
    return [(*place[:even], row, *place[even:]) for row, place in order]


def _snake(sizes: Sequence[int]) -> list[Order]:
    """A way through a block by steps of one."""
    if not sizes:
        return [()]
    inner = _snake(sizes[1:])
    return [(at, *place) for at in range(sizes[0]) for place in (inner if at % 2 == 0 else inner[::-1])]
