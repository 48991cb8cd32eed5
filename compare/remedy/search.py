"""The smallest set of remedies that leaves the fewest avoidable bytes: which to measure next, and when to stop.

It compiles nothing: it yields sets of remedies, and receives the measurement of each.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from compare.remedy.remedies import BYTES, CODE, Group, Remedy
from meshes.variants import PIN

MOVED = 0.01
"""Fraction of the bytes a remedy removes that it may add elsewhere."""

LONGER = 1.02
"""A modelled step is longer, or shorter, than another beyond this factor."""

Names = frozenset[str]
"""Names of remedies that are applied together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One program: the bytes beyond the plan, the unserved bytes of the plan, and the modelled step."""

    groups: Mapping[Group, int] = field(default_factory=dict)
    missing: int = 0
    needed: int = 0
    """Inherent bytes of the plan, served or not."""
    unknown_rows: int = 0
    step_ns: float | None = None
    error: str = ""
    """Why it could not be measured; empty if it was."""

    @property
    def unneeded_bytes(self) -> int:
        """Inflated, induced and missing bytes of a step."""
        return sum(self.groups.values()) + self.missing

    def of(self, verdict: str) -> int:
        """Bytes of one verdict."""
        return sum(amount for key, amount in self.groups.items() if key[3] == verdict)

    def bytes_beyond(self, base: "Measurement") -> int:
        """Bytes beyond those of another program, summed over scopes and axes."""
        places = {key[:2] for key in (*self.groups, *base.groups)}
        return sum(max(0, self.at(place) - base.at(place)) for place in places) + max(0, self.missing - base.missing)

    def at(self, place: tuple[str, ...]) -> int:
        """Bytes of one scope and axes."""
        return sum(amount for key, amount in self.groups.items() if key[:2] == place)


Answers = Mapping[Names, Measurement]
Asking = Generator[list[Names], Answers, Names]


def is_better(measurement: Measurement | None, base: Measurement) -> bool:
    """Whether a program has fewer avoidable bytes, and its modelled step is not longer."""
    return saves_bytes(measurement, base) and not (measurement and is_slower(measurement, base))


def saves_bytes(measurement: Measurement | None, base: Measurement) -> bool:
    """Whether a program has fewer avoidable bytes, no more unknown rows, and next to no bytes moved elsewhere."""
    if measurement is None or measurement.error or measurement.unknown_rows > base.unknown_rows:
        return False
    added = measurement.bytes_beyond(base)
    removed = base.unneeded_bytes - measurement.unneeded_bytes + added
    return measurement.unneeded_bytes < base.unneeded_bytes and added <= removed * MOVED


def is_slower(measurement: Measurement, base: Measurement) -> bool:
    """Whether its modelled step is longer; where one is not known, it is not."""
    if measurement.error or measurement.step_ns is None or base.step_ns is None:
        return False
    return measurement.step_ns > LONGER * base.step_ns


def is_faster(measurement: Measurement | None, base: Measurement) -> bool:
    """Whether its modelled step is shorter, and it has no more avoidable bytes and no more unknown rows."""
    if measurement is None or measurement.error or not is_slower(base, measurement):
        return False
    return measurement.unneeded_bytes <= base.unneeded_bytes and measurement.unknown_rows <= base.unknown_rows


class Search:
    """One program's search; `known`: set of remedies -> measurement, the empty set for the default."""

    def __init__(self, base: Measurement, remedies: Sequence[Remedy]):
        self.remedies = {remedy.name: remedy for remedy in remedies if (remedy.kind, remedy.aim) == (CODE, BYTES)}
        self.known: dict[Names, Measurement] = {frozenset(): base}
        self.base = base

    def steps(self) -> Asking:
        """Measure each alone, pins last; then the good ones together; then drop members that cost nothing.

        One change that leaves no avoidable bytes ends the search: no set is smaller.
        """
        singles = [frozenset((name,)) for name in self.remedies]
        pins = frozenset(name for name in self.remedies if name.startswith(PIN))
        yield from self._ask([names for names in singles if not names & pins])
        if ends := [names for names in singles if self._is_good(names) and not self.known[names].unneeded_bytes]:
            return min(ends, key=self._rank)
        yield from self._ask([*(names for names in singles if names & pins), *([pins] if len(pins) > 1 else [])])
        good = self._one_a_site([names for names in singles if self._is_good(names)])
        together, merged = (
            frozenset[str]().union(*good),
            frozenset[str]().union(*(names for names in good if not names & pins)),
        )
        tried = [names for names in (together, pins, pins | merged) if names]
        yield from self._ask(tried)
        best = min([*good, *filter(self._is_good, tried)], key=self._rank, default=frozenset[str]())
        for names in sorted(good, key=self._rank):
            # A remedy that is not compatible with all the others may be with the best.
            if self.known[best].unneeded_bytes and not names <= best:
                yield from self._ask([best | names])
                best = min([best, *filter(self._is_good, [best | names])], key=self._rank)
        return (yield from self._dropped(best))

    def _ask(self, sets: Sequence[Names]) -> Generator[list[Names], Answers, None]:
        wanted = [names for names in dict.fromkeys(sets) if names not in self.known]
        if wanted:
            self.known |= yield wanted

    def _is_good(self, names: Names) -> bool:
        return is_better(self.known.get(names), self.base)

    def _rank(self, names: Names) -> tuple[int, int, float, list[int]]:
        """Sort key: bytes left, then the number of changes, then the modelled step, then the order of the table."""
        measurement = self.known[names]
        order = list(self.remedies)
        return (
            measurement.unneeded_bytes,
            len(names),
            measurement.step_ns or 0.0,
            sorted(order.index(name) for name in names),
        )

    def _one_a_site(self, sets: Sequence[Names]) -> list[Names]:
        """The best single remedy of each site."""
        by_site: dict[str, Names] = {}
        for names in sorted(sets, key=self._rank):
            by_site.setdefault(self.remedies[next(iter(names))].site, names)
        return list(by_site.values())

    def _dropped(self, best: Names) -> Asking:
        """The set without the members that change nothing."""
        while len(best) > 1:
            without = {name: best - {name} for name in sorted(best)}
            yield from self._ask(list(without.values()))
            idle = [name for name, names in without.items() if self._costs_nothing(names, best)]
            if not idle:
                break
            fewer = best - set(idle)
            yield from self._ask([fewer] if fewer else [])
            # Several that are idle alone may not be so together.
            best = fewer if fewer and self._costs_nothing(fewer, best) else without[idle[0]]
        return best

    def _costs_nothing(self, names: Names, best: Names) -> bool:
        return (
            names in self.known
            and self._is_good(names)
            and self.known[names].unneeded_bytes <= self.known[best].unneeded_bytes
        )
