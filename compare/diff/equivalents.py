"""The same communication in another form: one collective in one program, several in another.

An all-reduce is a reduce-scatter and an all-gather of its result; an all-gather or a reduce-scatter is the permutes of
its windowed einsum, or of any ring around its groups that moves the same bytes; each of them is its stages over one
axis after the other, or within slices and between them; a combined collective is those that the combiner joined; and a
collective in a loop is its copies in the unrolled loop.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from compare.diff.decompositions import HOP, Found, connected_devices, find_parts, find_stages, remove_rows
from compare.hlo.collective import Collective
from compare.hlo.scope_key import is_scope_inferred, scope_or_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """Rows of a that are equivalent to rows of b."""

    how: str
    a: tuple[Collective, ...]
    b: tuple[Collective, ...]

    @property
    def delta_bytes(self) -> int:
        """Bytes a step that b sends beyond a: a windowed einsum can have more hops than it needs."""
        return _sent(self.b) - _sent(self.a)

    @property
    def delta_dcn_bytes(self) -> int:
        """Of these, the bytes between slices; a sum over several slices in stages sends fewer."""
        return _sent(row for row in self.b if row.network == "dcn") - _sent(
            row for row in self.a if row.network == "dcn"
        )


def _sent(rows: Iterable[Collective]) -> int:
    return sum(row.step_wire_bytes or 0 for row in rows)


class Leftover:
    """The rows of two programs that are not matched yet, each in program order."""

    def __init__(self, a: Sequence[Collective], b: Sequence[Collective]):
        self.a, self.b = list(a), list(b)

    def pairs(
        self,
        key: Callable[[Collective], Hashable],
        fits: Callable[[Collective, Collective], bool] = lambda a, b: True,
    ) -> Iterator[tuple[Collective, Collective]]:
        """Remove and yield pairs of rows with equal keys, in program order."""
        waiting: defaultdict[Hashable, list[Collective]] = defaultdict(list)
        for row in self.b:
            waiting[key(row)].append(row)
        matched = []
        for row in self.a:
            candidates = waiting[key(row)]
            at = next((at for at, other in enumerate(candidates) if fits(row, other)), None)
            if at is not None:
                matched.append((row, candidates.pop(at)))
        self.take(row for pair in matched for row in pair)
        yield from matched

    def take(self, rows: Iterable[Collective]) -> None:
        gone = set(map(id, rows))
        if gone:
            self.a = [row for row in self.a if id(row) not in gone]
            self.b = [row for row in self.b if id(row) not in gone]


def find_equivalents(left: Leftover) -> Iterator[Equivalent]:
    """Yield the equivalents of two programs, and remove their rows from `left`."""
    how = "one collective in a loop, or its copies in the unrolled loop"
    yield from _grouped(left, _loop_key, _same_runs, how=how)
    yield from _grouped(left, _loop_key_anywhere, _same_runs_of_nameless, how=how)
    yield from _grouped(left, _combined_key, _same_operands, how=_COMBINED)
    for find in (_combined, find_parts, find_stages):
        for swapped in (False, True):
            singles, parts = (left.b, left.a) if swapped else (left.a, left.b)
            for how, single, rows in find(singles, parts):
                a, b = ((*rows,), (single,)) if swapped else ((single,), (*rows,))
                yield Equivalent(how=how, a=a, b=b)
                left.take((*a, *b))


def _grouped(
    left: Leftover,
    key: Callable[[Collective], Hashable],
    same: Callable[[Sequence[Collective], Sequence[Collective]], bool],
    *,
    how: str,
) -> Iterator[Equivalent]:
    """Groups of rows with equal keys that are the same; one side may have further rows."""
    groups: dict[Hashable, tuple[list[Collective], list[Collective]]] = {}
    for side, rows in enumerate((left.a, left.b)):
        for row in rows:
            groups.setdefault(key(row), ([], []))[side].append(row)
    for a, b in groups.values():
        a, b = _as_often(a, b), _as_often(b, a)
        if a and b and same(a, b):
            yield Equivalent(how=how, a=tuple(a), b=tuple(b))
            left.take((*a, *b))


def _as_often(rows: list[Collective], others: Sequence[Collective]) -> list[Collective]:
    """The first of these rows that together run as often as the others; all if they run no more often."""
    wanted = sum(row.executions or 0 for row in others)
    if sum(row.executions or 0 for row in rows) <= wanted:
        return rows
    chosen = []
    for row in rows:
        if (row.executions or 0) <= wanted:
            chosen.append(row)
            wanted -= row.executions or 0
    return chosen


def _loop_key_anywhere(row: Collective) -> Hashable:
    ways = frozenset(row.mesh_groups) if row.kind == HOP else connected_devices(row.mesh_groups)
    return row.kind, ways, row.network, row.dtype, row.payload_bytes


def _loop_key(row: Collective) -> Hashable:
    return scope_or_path(row), _loop_key_anywhere(row)


def _same_runs(a: Sequence[Collective], b: Sequence[Collective]) -> bool:
    """Equal sums of exactly known executions and bytes."""
    if any(row.executions_are != "exact" or row.step_wire_bytes is None for row in (*a, *b)):
        return False
    sides = [[(row.executions or 0, row.step_wire_bytes or 0) for row in rows] for rows in (a, b)]
    runs, steps = zip(*(map(sum, zip(*side, strict=True)) for side in sides), strict=True)
    return len(set(runs)) == len(set(steps)) == 1


def _same_runs_of_nameless(a: Sequence[Collective], b: Sequence[Collective]) -> bool:
    """As `_same_runs`, where some copies have lost their op_name, and have the scope of their neighbours."""
    return len(a) != len(b) and any(map(is_scope_inferred, (*a, *b))) and _same_runs(a, b)


def _combined_key(row: Collective) -> Hashable:
    return row.kind, connected_devices(row.mesh_groups), row.network, row.executions, row.executions_are


def _same_operands(a: Sequence[Collective], b: Sequence[Collective]) -> bool:
    sides = [sum(map(_operands, rows), Counter[Hashable]()) for rows in (a, b)]
    return sides[0] == sides[1] and len(a) != len(b) and _of_one_place(a, b)


def _operands(row: Collective) -> Counter[Hashable]:
    return Counter((operand.dtype, operand.payload_bytes) for operand in row.operands)


def _of_one_place(a: Iterable[Collective], b: Iterable[Collective]) -> bool:
    """Whether the scopes of one side include those of the other, or some scope is unknown."""
    sides = [
        {operand.scope for row in rows for operand in row.operands} | {row.scope for row in rows} for rows in (a, b)
    ]
    return any("?" in side for side in sides) or sides[0] <= sides[1] or sides[1] <= sides[0]


_COMBINED = "the same arrays, combined differently"


def _combined(singles: Sequence[Collective], parts: Sequence[Collective]) -> list[Found]:
    """Each combined collective that is several collectives of the other program."""
    pools: defaultdict[Hashable, list[Collective]] = defaultdict(list)
    for row in parts:
        pools[_combined_key(row)].append(row)
    matches = []
    for single in singles:
        pool, left, rows = pools[_combined_key(single)], _operands(single), list[Collective]()
        for row in pool if len(single.operands) > 1 else ():
            if _operands(row) <= left and _of_one_place([single], [row]):
                left -= _operands(row)
                rows.append(row)
        if rows and not left:
            pools[_combined_key(single)] = remove_rows(pool, rows)
            matches.append((_COMBINED, single, rows))
    return matches
