"""Two programs' collectives, matched: alike, the same in another form, changed, or only in one of them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from compare.diff.equivalents import Equivalent, Leftover, find_equivalents
from compare.hlo.collective import Collective
from compare.hlo.scope_key import is_scope_inferred, scope_or_path

MOST_ALIGNED = 4_000_000
"""Product of the numbers of rows beyond which rows are paired without regard to their order."""

Pair = tuple[Collective, Collective]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffEntry:
    """One line of a diff: collectives that are alike among themselves, with no counterpart or a changed one."""

    what: str
    """`only in a`, `only in b`, or `changed`."""
    a: tuple[Collective, ...]
    b: tuple[Collective, ...]
    """For `changed`, as many as `a`, in the same order."""
    changes: tuple[str, ...] = ()
    """The columns that differ."""

    @property
    def first(self) -> Collective:
        """The row that represents all of them, of b if there is one."""
        return (self.b or self.a)[0]

    @property
    def delta_bytes(self) -> int | None:
        """Bytes a step that b sends beyond a; None if some executions are unknown."""
        return delta_bytes(self.a, self.b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What two programs have in common, and where they differ."""

    a: tuple[Collective, ...]
    b: tuple[Collective, ...]
    alike: tuple[Pair, ...]
    moved: int
    """Number of `alike` pairs that are in another order."""
    rescoped: tuple[Pair, ...]
    """Pairs of `alike` whose scope is inferred from neighbours, and differs between the programs."""
    equivalents: tuple[Equivalent, ...]
    differences: tuple[DiffEntry, ...]
    """The largest first."""

    @property
    def is_empty(self) -> bool:
        """Whether both move the same bytes; another order or form of the same bytes is no difference."""
        costs = any(equivalent.delta_bytes or equivalent.delta_dcn_bytes for equivalent in self.equivalents)
        return not self.differences and not costs


def match(a: Sequence[Collective], b: Sequence[Collective]) -> Diff:
    """Match rows by kind, axes, bytes, scope and order; then by equivalent forms; then by what is closest."""
    aligned = list(_aligned([_key(row) for row in a], [_key(row) for row in b]))
    in_order = [(a[i], b[j]) for i, j in aligned]
    left = Leftover(_without(a, (i for i, _ in aligned)), _without(b, (j for _, j in aligned)))
    moved = list(left.pairs(_key))
    inferred = list(left.pairs(_key_without_scope, fits=_scope_is_inferred))
    equivalents = list(find_equivalents(left))
    changed = list(_changed(left))
    single = [DiffEntry(what="changed", a=(x,), b=(y,), changes=_changes(x, y)) for x, y in changed]
    single += [DiffEntry(what="only in a", a=(row,), b=()) for row in left.a]
    single += [DiffEntry(what="only in b", a=(), b=(row,)) for row in left.b]
    return Diff(
        a=tuple(a),
        b=tuple(b),
        alike=(*in_order, *moved, *inferred),
        moved=len(moved),
        rescoped=tuple(inferred),
        equivalents=tuple(equivalents),
        differences=tuple(sorted(_grouped(single), key=_size, reverse=True)),
    )


def delta_bytes(a: Iterable[Collective], b: Iterable[Collective]) -> int | None:
    """Bytes a step of b beyond those of a."""
    steps = [(sign, row.step_wire_bytes) for sign, rows in ((-1, a), (1, b)) for row in rows]
    if any(amount is None for _, amount in steps):
        return None
    return sum(sign * amount for sign, amount in steps if amount is not None)


def axes_or_groups(row: Collective) -> Hashable:
    """What it runs over: its axes if they determine its groups, else the groups; for a permute its pairs."""
    if row.kind == "collective-permute":
        return frozenset(row.mesh_groups)
    if row.axes == "?" or ":" in row.axes:
        return frozenset(map(frozenset, row.mesh_groups))
    return row.axes


def _key_without_scope(row: Collective) -> Hashable:
    return (
        row.kind,
        axes_or_groups(row),
        row.network,
        row.dtype,
        row.payload_bytes,
        row.executions,
        row.executions_are,
        row.step_wire_bytes,
    )


def _key(row: Collective) -> Hashable:
    return (row.scope, _key_without_scope(row))


def _scope_is_inferred(a: Collective, b: Collective) -> bool:
    """Whether the scope of either is inferred from its neighbours."""
    return is_scope_inferred(a) or is_scope_inferred(b)


def _aligned(a: Sequence[Hashable], b: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    """Indices of equal rows that are in the same order in both."""
    first = 0
    while first < min(len(a), len(b)) and a[first] == b[first]:
        yield first, first
        first += 1
    last = 0
    while last < min(len(a), len(b)) - first and a[-1 - last] == b[-1 - last]:
        yield len(a) - 1 - last, len(b) - 1 - last
        last += 1
    inside_a, inside_b = a[first : len(a) - last], b[first : len(b) - last]
    if inside_a and inside_b and len(inside_a) * len(inside_b) <= MOST_ALIGNED:
        for block in SequenceMatcher(None, inside_a, inside_b, autojunk=False).get_matching_blocks():
            yield from ((first + block.a + at, first + block.b + at) for at in range(block.size))


def _without(rows: Sequence[Collective], taken: Iterable[int]) -> list[Collective]:
    gone = set(taken)
    return [row for at, row in enumerate(rows) if at not in gone]


def _same_place(row: Collective) -> Hashable:
    """Its scope or path; if neither is known, a key that no other row has."""
    return scope_or_path(row) or id(row)


_TIERS: tuple[Callable[[Collective], Hashable], ...] = (
    lambda row: (row.kind, axes_or_groups(row), _same_place(row), row.payload_bytes, row.dtype),
    lambda row: (row.kind, row.axes, _same_place(row), row.payload_bytes, row.executions),
    lambda row: (row.kind, axes_or_groups(row), _same_place(row), row.executions),
    lambda row: (row.kind, axes_or_groups(row), _same_place(row)),
    lambda row: (row.kind, axes_or_groups(row), row.payload_bytes, row.dtype, row.executions),
    lambda row: (row.kind, _same_place(row), row.payload_bytes),
    lambda row: (row.axes, _same_place(row), row.payload_bytes, row.executions),
)
"""What two rows must share to count as one that changed; closest match first."""


def _changed(left: Leftover) -> Iterator[Pair]:
    for tier in _TIERS:
        yield from left.pairs(tier)


_COLUMNS = ("kind", "axes", "network", "scope", "dtype", "payload_bytes", "executions", "executions_are", "groups")


def _changes(a: Collective, b: Collective) -> tuple[str, ...]:
    changed = [name for name in _COLUMNS[:-1] if getattr(a, name) != getattr(b, name)]
    return tuple(changed) or _COLUMNS[-1:]


def _grouped(differences: Sequence[DiffEntry]) -> Iterator[DiffEntry]:
    """Equal differences of rows with the same scope, joined into one line, in order of first occurrence."""
    groups: defaultdict[Hashable, list[DiffEntry]] = defaultdict(list)
    for difference in differences:
        groups[
            difference.what,
            difference.changes,
            tuple((scope_or_path(row), _key(row)) for row in (*difference.a, *difference.b)),
        ].append(difference)
    for group in groups.values():
        a, b = (tuple(row for difference in group for row in getattr(difference, side)) for side in ("a", "b"))
        yield DiffEntry(what=group[0].what, a=a, b=b, changes=group[0].changes)


def _size(difference: DiffEntry) -> tuple[bool, int]:
    """Sort key: unknown deltas first, then by bytes."""
    delta = difference.delta_bytes
    return delta is None, abs(delta or 0)
