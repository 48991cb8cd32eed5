"""One collective of a program that is several of another: a sum as scatter and gather, a ring's permutes, stages."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from compare.diff.staged_collectives import GATHER, SCATTER, SUM, Stages
from compare.hlo.collective import Collective
from compare.hlo.devices.groups import Groups
from compare.hlo.scope_key import is_scope_inferred, scope_or_path

HOP = "collective-permute"


@lru_cache(maxsize=1024)
def connected_devices(groups: Groups) -> frozenset[frozenset[int]]:
    """Sets of devices that communicate; for a permute, those that its pairs connect."""
    components: list[set[int]] = []
    for group in groups:
        joined = [component for component in components if component & set(group)]
        components = [component for component in components if not component & set(group)]
        components.append(set(group).union(*joined))
    return frozenset(map(frozenset, components))


Found = tuple[str, Collective, list[Collective]]


def find_parts(singles: Sequence[Collective], parts: Sequence[Collective]) -> list[Found]:
    """Sums, gathers and scatters of one program that are several collectives of the other."""
    pool, matches = [row for row in parts if row.kind in (GATHER, SCATTER, HOP)], list[Found]()
    rings: dict[Hashable, list[Collective]] = {}
    matched: set[int] = set()
    for nearby in (True, False) if pool else ():
        for single in singles:
            rows = [] if id(single) in matched else _parts(single, pool, _Near(single, nearby))
            if rows:
                pool = remove_rows(pool, rows)
                matched.add(id(single))
                matches.append((_HOW[single.kind], single, rows))
                rings |= {_ring_key(row): rows for row in rows if row.kind == HOP}
    for row in pool:
        # A windowed einsum may have more permutes than its gather or scatter needs; they belong to it too.
        if row.form == "windowed-einsum" and _ring_key(row) in rings:
            rings[_ring_key(row)].append(row)
    return matches


_HOW = {
    SUM: "an all-reduce is a reduce-scatter and an all-gather",
    GATHER: "an all-gather is the permutes of a ring around its groups",
    SCATTER: "a reduce-scatter is the permutes of a ring around its groups",
}


def find_stages(singles: Sequence[Collective], parts: Sequence[Collective]) -> list[Found]:
    """Sums, gathers and scatters of one program that the other does in stages, each over part of their groups."""
    steps, matches = Stages(parts), list[Found]()
    left = [row for row in singles if row.kind in _HOW]
    for nearby in (True, False):
        for single in left:
            rows = steps.of(single, fits=_Near(single, nearby), gathers_fit=_can_be_a_result)
            if rows:
                steps.take(rows)
                matches.append((_STEPS, single, rows))
        left = remove_rows(left, [single for _, single, _ in matches])
    return matches


_STEPS = "in stages, each over a part of its devices"


@dataclass(frozen=True, slots=True)
class _Near:
    """Whether a row may be part of another: it has the same scope, or, unless `nearby`, the scope of one of them is
    only inferred."""

    single: Collective
    nearby: bool

    def __call__(self, row: Collective) -> bool:
        if scope_or_path(row) == scope_or_path(self.single):
            return True
        return not self.nearby and (is_scope_inferred(row) or is_scope_inferred(self.single))


def _can_be_a_result(row: Collective) -> bool:
    """Whether a gather can be of a scatter's result: its operands are not parameters, as weights and caches are."""
    return not any(operand.parameters for operand in row.operands)


def _parts(single: Collective, pool: Sequence[Collective], near: _Near) -> list[Collective]:
    """The rows that are equivalent to it together; empty if there are none."""
    if single.step_wire_bytes is None or not single.mesh_groups:
        return []
    if single.kind in (GATHER, SCATTER):
        return _ring(single, pool, near)
    if single.kind != SUM:
        return []
    scatter = _one(single, SCATTER, pool, near) or _ring(single, pool, near)
    if not scatter:
        return []
    rest = sorted(remove_rows(pool, scatter), key=lambda row: row.gathers_result_of != scatter[0].name)
    # The gather may be anywhere in the program: it belongs to the operation that needs the full sum.
    gather = _one(single, GATHER, rest, _can_be_a_result) or _ring(single, rest, near)
    return [*scatter, *gather] if gather else []


def _one(
    single: Collective, kind: str, pool: Iterable[Collective], fits: Callable[[Collective], bool]
) -> list[Collective]:
    """A collective of this kind with the same payload, executed as often on each device."""
    for row in pool:
        same = row.payload_bytes == single.payload_bytes and row.device_executions == single.device_executions
        if row.kind == kind and same and _same_cargo(row, single) and fits(row):
            return [row]
    return []


def _ring(single: Collective, pool: Iterable[Collective], near: _Near) -> list[Collective]:
    """Permutes of its shards around its groups that send the same bytes; those of a windowed einsum may send more."""
    size = max(map(len, single.mesh_groups))
    needed = (single.step_wire_bytes or 0) // (2 if single.kind == SUM else 1)
    rows: list[Collective] = []
    sent = 0
    for row in pool:
        # In a bidirectional ring, a hop can be half a shard.
        shard = row.kind == HOP and row.payload_bytes * size in (single.payload_bytes, single.payload_bytes // 2)
        if shard and row.step_wire_bytes and _same_cargo(row, single) and near(row):
            rows.append(row)
            sent += row.step_wire_bytes
        if rows and sent >= needed - len(rows):  # each is rounded to whole bytes
            break
    more = sent > needed + len(rows)
    enough = sent >= needed - len(rows) and (not more or all(row.form == "windowed-einsum" for row in rows))
    return rows if rows and enough and _all_receive(rows, single) else []


def _all_receive(hops: Sequence[Collective], single: Collective) -> bool:
    """Whether each device receives the shards of all others of its group."""
    received: Counter[int] = Counter()
    for row in hops:
        for source, target in row.mesh_groups:
            if source != target:
                received[target] += row.payload_bytes * row.device_executions[source]
    for group in single.mesh_groups:
        needed = single.payload_bytes * (len(group) - 1) // len(group)
        if any(received[device] < needed * single.device_executions[device] for device in group):
            return False
    return True


def _same_cargo(row: Collective, single: Collective) -> bool:
    return row.dtype == single.dtype and connected_devices(row.mesh_groups) == connected_devices(single.mesh_groups)


def _ring_key(row: Collective) -> Hashable:
    return connected_devices(row.mesh_groups), scope_or_path(row), row.dtype, row.payload_bytes, row.executions


def remove_rows(rows: Sequence[Collective], taken: Sequence[Collective]) -> list[Collective]:
    gone = set(map(id, taken))
    return [row for row in rows if id(row) not in gone]
