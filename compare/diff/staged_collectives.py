"""A collective in steps: over some of its devices first, then over others, as over several axes or several slices.

An all-gather or a reduce-scatter of a group is one over its parts after the other; an all-reduce is scatters, a sum
between the parts of what they left, and gathers back.  The bytes are the same if each device comes to hold the share of
every other device of its group, once: that is followed here, device by device.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from compare.hlo.collective import Collective

SCATTER, GATHER, SUM = "reduce-scatter", "all-gather", "all-reduce"
MOST_STEPS = 4
"""Of one kind: no mesh has more axes that one collective is over."""

Fits = Callable[[Collective], bool]


class Stages:
    """The rows of a program that could be steps of another program's, by what they carry."""

    def __init__(self, rows: Sequence[Collective]):
        self._rows: defaultdict[Hashable, list[Collective]] = defaultdict(list)
        for row in rows:
            if row.kind in (SCATTER, GATHER, SUM) and row.step_wire_bytes is not None and _size(row) > 1:
                self._rows[row.kind, row.dtype, row.executions, row.payload_bytes].append(row)
        self._taken: set[int] = set()

    def take(self, rows: Sequence[Collective]) -> None:
        """These are steps of one, and of no other."""
        self._taken.update(map(id, rows))

    def of(self, single: Collective, *, fits: Fits, gathers_fit: Fits) -> list[Collective]:
        """Two rows or more that do the work of `single` together, if there are such.

        fits: which rows may be steps of it; of a sum's gathers `gathers_fit` says so.
        """
        if single.step_wire_bytes is None or _size(single) < 2:
            return []
        if single.kind == SUM:
            ways = self._sums(single, fits, gathers_fit)
        else:
            chains = self._chains(single, single.kind, fits, _size(single))
            ways = (chain for chain in chains if _held(chain) == _held([single]))
        return next((chain for chain in ways if len(chain) > 1 and _moves_as_much(single, chain)), [])

    def _sums(self, single: Collective, fits: Fits, gathers_fit: Fits) -> Iterator[list[Collective]]:
        for part in (part for part in range(2, _size(single) + 1) if _size(single) % part == 0):
            for scatters in self._chains(single, SCATTER, fits, part):
                for between in self._between(single, fits, part):
                    if _held([*scatters, *between]) == _held([single]):
                        gathers = self._chains(single, GATHER, gathers_fit, part)
                        yield from (
                            [*scatters, *between, *gather_chain]
                            for gather_chain in gathers
                            if _held(gather_chain) == _held(scatters)
                        )

    def _between(self, single: Collective, fits: Fits, part: int) -> Iterator[list[Collective]]:
        """The sum of what scatters over `part` devices have left; none where they were over all."""
        if part == _size(single):
            yield []
        else:
            alike = self._carrying(single, SUM, part)
            yield from ([row] for row in alike if _size(row) * part == _size(single) and fits(row))

    def _chains(
        self, single: Collective, kind: str, fits: Fits, size: int, before: tuple[Collective, ...] = (), part: int = 1
    ) -> Iterator[list[Collective]]:
        """Rows of one kind over `size` devices together: one carries all, the next a device's share of it, and so on.

        Scatters are in the order in which they run, gathers in the other.
        """
        if part == size:
            yield list(before)
        elif len(before) < MOST_STEPS:
            for row in self._carrying(single, kind, part):
                if all(row is not earlier for earlier in before) and size % (part * _size(row)) == 0 and fits(row):
                    yield from self._chains(single, kind, fits, size, (*before, row), part * _size(row))

    def _carrying(self, single: Collective, kind: str, part: int) -> Sequence[Collective]:
        """Rows that carry one `part`-th of it, as often."""
        payload, left = divmod(single.payload_bytes, part)
        alike = () if left else self._rows.get((kind, single.dtype, single.executions, payload), ())
        return [row for row in alike if id(row) not in self._taken]


def _size(row: Collective) -> int:
    """Devices of each of its groups; 0 where they are not equal."""
    sizes = {len(group) for group in row.mesh_groups}
    return sizes.pop() if len(sizes) == 1 else 0


def _held(steps: Sequence[Collective]) -> Mapping[int, frozenset[int]] | None:
    """Of each device, whose shares it holds at the end; nothing where one came twice."""
    held: dict[int, frozenset[int]] = {}
    for row in reversed(steps) if steps and steps[0].kind == GATHER else steps:
        for group in row.mesh_groups:
            shares = [held.get(device, frozenset((device,))) for device in group]
            together = frozenset[int]().union(*shares)
            if len(together) != sum(map(len, shares)):
                return None
            held |= dict.fromkeys(group, together)
    return held


def _moves_as_much(single: Collective, steps: Sequence[Collective]) -> bool:
    """Whether they send the same in a step; each is rounded to whole bytes."""
    sent = sum(row.step_wire_bytes or 0 for row in steps)
    return abs(sent - (single.step_wire_bytes or 0)) <= len(steps)
