"""The same communication in another form: what one program writes as one collective, another as several.

An all-reduce is a reduce-scatter and an all-gather (of what it made); an all-gather or a reduce-scatter is the permutes
of its windowed einsum, or of any ring around its groups that moves the same; collectives that a combiner has joined are
those that it joined; and a collective in a loop is its copies where the loop is unrolled.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from compare.judge.whereabouts import has_lost_its_scope, where
from compare.program.groups import Groups
from compare.program.records import Collective

SCATTER, GATHER, SUM, HOP = "reduce-scatter", "all-gather", "all-reduce", "collective-permute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """Rows of a that do the work of rows of b."""

    how: str
    a: tuple[Collective, ...]
    b: tuple[Collective, ...]

    @property
    def delta_bytes(self) -> int:
        """Bytes a step that b sends more than a: the hops of a windowed einsum can be more than it needs."""
        return sum(row.step_wire_bytes or 0 for row in self.b) - sum(row.step_wire_bytes or 0 for row in self.a)


class Leftover:
    """The rows of two programs that are not matched yet, each in program order."""

    def __init__(self, a: Sequence[Collective], b: Sequence[Collective]):
        self.a, self.b = list(a), list(b)

    def pairs(
        self,
        key: Callable[[Collective], Hashable],
        fits: Callable[[Collective, Collective], bool] = lambda a, b: True,
    ) -> Iterator[tuple[Collective, Collective]]:
        """Rows of one key, the first with the first; they are taken out."""
        waiting: defaultdict[Hashable, list[Collective]] = defaultdict(list)
        for row in self.b:
            waiting[key(row)].append(row)
        found = []
        for row in self.a:
            own = waiting[key(row)]
            at = next((at for at, other in enumerate(own) if fits(row, other)), None)
            if at is not None:
                found.append((row, own.pop(at)))
        self.take(row for pair in found for row in pair)
        yield from found

    def take(self, rows: Iterable[Collective]) -> None:
        gone = set(map(id, rows))
        if gone:
            self.a = [row for row in self.a if id(row) not in gone]
            self.b = [row for row in self.b if id(row) not in gone]


def equivalents(left: Leftover) -> Iterator[Equivalent]:
    """What is found is taken out of `left`."""
    how = "in a loop, or its copies where the loop is unrolled"
    yield from _grouped(left, _loop_key, _same_runs, how=how)
    yield from _grouped(left, _loop_key_anywhere, _same_runs_of_nameless, how=how)
    yield from _grouped(left, _combined_key, _same_operands, how="the same arrays, combined otherwise")
    for swapped in (False, True):
        wholes, parts = (left.b, left.a) if swapped else (left.a, left.b)
        for how, whole, own in _in_parts(wholes, parts):
            a, b = ((*own,), (whole,)) if swapped else ((whole,), (*own,))
            yield Equivalent(how=how, a=a, b=b)
            left.take((*a, *b))


def _grouped(
    left: Leftover,
    key: Callable[[Collective], Hashable],
    same: Callable[[Sequence[Collective], Sequence[Collective]], bool],
    *,
    how: str,
) -> Iterator[Equivalent]:
    """Groups of one key that are the same as a whole."""
    groups: dict[Hashable, tuple[list[Collective], list[Collective]]] = {}
    for side, rows in enumerate((left.a, left.b)):
        for row in rows:
            groups.setdefault(key(row), ([], []))[side].append(row)
    for a, b in groups.values():
        if a and b and same(a, b):
            yield Equivalent(how=how, a=tuple(a), b=tuple(b))
            left.take((*a, *b))


def _loop_key_anywhere(row: Collective) -> Hashable:
    ways = frozenset(row.mesh_groups) if row.kind == HOP else _groups(row.mesh_groups)
    return row.kind, ways, row.dtype, row.payload_bytes


def _loop_key(row: Collective) -> Hashable:
    return where(row), _loop_key_anywhere(row)


def _same_runs(a: Sequence[Collective], b: Sequence[Collective]) -> bool:
    """Equal sums of exactly known executions and bytes."""
    if any(row.executions_are != "exact" or row.step_wire_bytes is None for row in (*a, *b)):
        return False
    sides = [[(row.executions or 0, row.step_wire_bytes or 0) for row in rows] for rows in (a, b)]
    runs, steps = zip(*(map(sum, zip(*side, strict=True)) for side in sides), strict=True)
    return len(set(runs)) == len(set(steps)) == 1


def _same_runs_of_nameless(a: Sequence[Collective], b: Sequence[Collective]) -> bool:
    """Of copies some may have lost their name, and stand where their neighbours do."""
    return len(a) != len(b) and any(map(has_lost_its_scope, (*a, *b))) and _same_runs(a, b)


def _combined_key(row: Collective) -> Hashable:
    return row.kind, _groups(row.mesh_groups), row.executions, row.executions_are


def _same_operands(a: Sequence[Collective], b: Sequence[Collective]) -> bool:
    sides = [Counter((one.dtype, one.payload_bytes) for row in rows for one in row.operands) for rows in (a, b)]
    return sides[0] == sides[1] and len(a) != len(b)


@lru_cache(maxsize=1024)
def _groups(groups: Groups) -> frozenset[frozenset[int]]:
    """Devices that talk to each other: of a permute those that its pairs connect."""
    found: list[set[int]] = []
    for group in groups:
        joined = [one for one in found if one & set(group)]
        found = [one for one in found if not one & set(group)]
        found.append(set(group).union(*joined))
    return frozenset(map(frozenset, found))


Found = tuple[str, Collective, list[Collective]]


def _in_parts(wholes: Sequence[Collective], parts: Sequence[Collective]) -> list[Found]:
    """Sums, gathers and scatters of one program that are several collectives of the other."""
    pool, found = [row for row in parts if row.kind in (GATHER, SCATTER, HOP)], list[Found]()
    rings: dict[Hashable, list[Collective]] = {}
    matched: set[int] = set()
    for nearby in (True, False) if pool else ():
        for whole in wholes:
            own = [] if id(whole) in matched else _parts(whole, pool, nearby=nearby)
            if own:
                pool = _without(pool, own)
                matched.add(id(whole))
                found.append((_HOW[whole.kind], whole, own))
                rings |= {_ring_key(row): own for row in own if row.kind == HOP}
    for row in pool:
        # The permutes of an einsum beyond what its gather or scatter needs are that einsum's all the same.
        if row.form == "windowed-einsum" and _ring_key(row) in rings:
            rings[_ring_key(row)].append(row)
    return found


_HOW = {
    SUM: "an all-reduce is a reduce-scatter and an all-gather",
    GATHER: "an all-gather is the permutes of a ring around its groups",
    SCATTER: "a reduce-scatter is the permutes of a ring around its groups",
}


def _parts(whole: Collective, pool: Sequence[Collective], *, nearby: bool) -> list[Collective]:
    """The rows that do its work together, if there are such; `nearby`: in its own place of the program."""
    if whole.step_wire_bytes is None or not whole.mesh_groups:
        return []
    if whole.kind in (GATHER, SCATTER):
        return _ring(whole, pool, nearby=nearby)
    if whole.kind != SUM:
        return []
    scatter = _one(whole, SCATTER, pool, nearby=nearby) or _ring(whole, pool, nearby=nearby)
    made_by = scatter[0].name if scatter else ""
    rest = sorted(_without(pool, scatter), key=lambda row: row.gathers != made_by)
    # The gather may stand anywhere: whoever needs the whole of the sum asks for it.
    gather = _one(whole, GATHER, rest, nearby=False) or _ring(whole, rest, nearby=nearby)
    return [*scatter, *gather] if scatter and gather else []


def _one(whole: Collective, kind: str, pool: Sequence[Collective], *, nearby: bool) -> list[Collective]:
    """A collective of this kind that carries the same, the same number of times."""
    for row in pool:
        same = row.payload_bytes == whole.payload_bytes and row.executions == whole.executions
        if row.kind == kind and same and _same_cargo(row, whole) and (not nearby or where(row) == where(whole)):
            return [row]
    return []


def _ring(whole: Collective, pool: Sequence[Collective], *, nearby: bool) -> list[Collective]:
    """Permutes of its shards around its groups that send as much as it: of a windowed einsum, or exactly as much."""
    size = max(map(len, whole.mesh_groups))
    needed = (whole.step_wire_bytes or 0) // (2 if whole.kind == SUM else 1)
    own: list[Collective] = []
    sent = 0
    for row in pool:
        hop = row.kind == HOP and _same_cargo(row, whole) and (not nearby or where(row) == where(whole))
        # Where it goes both ways around at once, a hop can be half a shard.
        if hop and row.step_wire_bytes and row.payload_bytes * size in (whole.payload_bytes, whole.payload_bytes // 2):
            own.append(row)
            sent += row.step_wire_bytes
        if own and sent >= needed - len(own):  # each is rounded to whole bytes
            break
    more = sent > needed + len(own)
    enough = sent >= needed - len(own) and (not more or all(row.form == "windowed-einsum" for row in own))
    return own if own and enough else []


def _same_cargo(row: Collective, whole: Collective) -> bool:
    return row.dtype == whole.dtype and _groups(row.mesh_groups) == _groups(whole.mesh_groups)


def _ring_key(row: Collective) -> Hashable:
    return _groups(row.mesh_groups), where(row), row.dtype, row.payload_bytes, row.executions


def _without(rows: Sequence[Collective], taken: Sequence[Collective]) -> list[Collective]:
    gone = set(map(id, taken))
    return [row for row in rows if id(row) not in gone]
