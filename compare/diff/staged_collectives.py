"""A collective in stages: over some of its devices first, then over others, as over several axes or slices.

An all-gather or a reduce-scatter of a group is a sequence of them over its parts; an all-reduce is reduce-scatters, a
sum between the parts, and all-gathers.  They are equivalent if each device ends up with the share of every other device
of its group exactly once, which is traced here device by device.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from compare.hlo.collective import Collective

SCATTER, GATHER, SUM = "reduce-scatter", "all-gather", "all-reduce"
MOST_STEPS = 4
"""The most stages of one kind: no mesh has more axes under one collective."""

Fits = Callable[[Collective], bool]


class Stages:
    """The rows of a program that could be stages of another program's collectives, by payload."""

    def __init__(self, rows: Sequence[Collective]):
        self._rows: defaultdict[Hashable, list[Collective]] = defaultdict(list)
        for row in rows:
            if row.kind in (SCATTER, GATHER, SUM) and row.step_wire_bytes is not None and _size(row) > 1:
                self._rows[row.kind, row.dtype, row.executions, row.payload_bytes].append(row)
        self._taken: set[int] = set()

    def take(self, rows: Sequence[Collective]) -> None:
        """Mark rows as used."""
        self._taken.update(map(id, rows))

    def of(self, single: Collective, *, fits: Fits, gathers_fit: Fits) -> list[Collective]:
        """Two or more rows that are equivalent to `single` together; empty if there are none.

        fits: whether a row may be a stage of it; `gathers_fit`: the same for the gathers of a sum.
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
        """The sum after scatters over `part` devices; no row if they were over all devices."""
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
        """Rows with a `part`-th of its payload, executed as often."""
        payload, left = divmod(single.payload_bytes, part)
        alike = () if left else self._rows.get((kind, single.dtype, single.executions, payload), ())
        return [row for row in alike if id(row) not in self._taken]


def _size(row: Collective) -> int:
    """Devices of each of its groups; 0 where they are not equal."""
    sizes = {len(group) for group in row.mesh_groups}
    return sizes.pop() if len(sizes) == 1 else 0


def _held(steps: Sequence[Collective]) -> Mapping[int, frozenset[int]] | None:
    """Device -> the devices whose shares it holds at the end; None if a share arrives twice."""
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
    """Whether they send the same bytes a step, up to rounding."""
    sent = sum(row.step_wire_bytes or 0 for row in steps)
    return abs(sent - (single.step_wire_bytes or 0)) <= len(steps)
