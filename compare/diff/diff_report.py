"""A diff of two programs as one value, which `--json`, the terminal and the page all read."""

from collections.abc import Iterable, Mapping, Sequence

from compare.diff.equivalents import Equivalent
from compare.diff.matching import Diff, DiffEntry
from compare.diff.result import (
    DifferenceEntry,
    DiffValues,
    EquivalentEntry,
    EquivalentRow,
    KindTotals,
    ProgramsDiff,
    ProgramSide,
    Value,
)
from compare.hlo.collective import Collective
from compare.hlo.scope_key import path_of, scope_or_path
from compare.report.grouping import group_by

SCHEMA = 1


def diff_report(
    diff: Diff, *, names: tuple[str, str], axes: Mapping[str, int], compiled: tuple[str, str] = ("", "")
) -> ProgramsDiff:
    """What `compare.diff A B --json` prints of two programs.

    compiled: for each, target and compiler if it was compiled here; empty if it came compiled.
    """
    a, b = (_side(*side) for side in zip(names, compiled, (diff.a, diff.b), strict=True))
    return {"schema": SCHEMA, "axes": dict(axes), "a": a, "b": b, **diff_values(diff)}


def diff_values(diff: Diff) -> DiffValues:
    """The JSON form of a diff: what is the same, and what differs."""
    return {
        "same": diff.is_empty,
        "alike": {
            "collectives": len(diff.alike),
            "step_wire_bytes": _sum(row for row, _ in diff.alike),
            "in_another_order": diff.moved,
            "of_other_neighbours": [[first.scope, second.scope] for first, second in diff.rescoped],
        },
        "equivalents": [_equivalent(equivalent) for equivalent in diff.equivalents],
        "differences": [_difference(difference) for difference in diff.differences],
    }


def _side(name: str, compiled: str, rows: Sequence[Collective]) -> ProgramSide:
    return {
        "name": name,
        "compiled": compiled,
        "collectives": len(rows),
        "step_wire_bytes": _sum(rows),
        "unknown_rows": sum(row.step_wire_bytes is None for row in rows),
        "upper_bound_rows": sum(row.executions_are == "upper-bound" for row in rows),
        "by_kind": _by_kind(rows),
    }


def _by_kind(rows: Sequence[Collective]) -> list[KindTotals]:
    groups = group_by(rows, lambda row: (row.kind, row.axes))
    return [
        {"kind": kind, "axes": axes, "collectives": len(members), "step_wire_bytes": _sum(members)}
        for (kind, axes), members in sorted(groups.items())
    ]


def _sum(rows: Iterable[Collective]) -> int:
    return sum(row.step_wire_bytes or 0 for row in rows)


def _difference(difference: DiffEntry) -> DifferenceEntry:
    row = difference.first
    # The paths of its operations in the framework, each once.
    paths = list(dict.fromkeys(filter(None, map(path_of, difference.b or difference.a)))) or [""]
    return {
        "what": difference.what,
        "kind": row.kind,
        "axes": row.axes,
        "network": row.network,
        "scope": row.scope,
        "dtype": row.dtype,
        "payload_bytes": row.payload_bytes,
        "executions": row.executions,
        "executions_are": row.executions_are,
        "where": scope_or_path(row),
        "op_name": paths[0],
        "other_op_names": paths[1:],
        "inferred": list(row.inferred),
        "times": len(difference.b or difference.a),
        "step_wire_bytes": [_sum(difference.a), _sum(difference.b)],
        "delta_bytes": difference.delta_bytes,
        "changes": {
            name: [_value(rows[0], name) for rows in (difference.a, difference.b)] for name in difference.changes
        },
        "a": [each.name for each in difference.a],
        "b": [each.name for each in difference.b],
        "source_line": next((each.source_line for each in (*difference.b, *difference.a) if each.source_line), None),
        "hlo": {side: rows[0].text for side, rows in (("a", difference.a), ("b", difference.b)) if rows},
    }


def _value(row: Collective, name: str) -> Value:
    if name == "groups":
        return [list(group) for group in row.groups]
    value: Value = getattr(row, name)
    return value


def _equivalent(equivalent: Equivalent) -> EquivalentEntry:
    return {
        "how": equivalent.how,
        "delta_bytes": equivalent.delta_bytes,
        "delta_dcn_bytes": equivalent.delta_dcn_bytes,
        "a": [_equivalent_row(row) for row in equivalent.a],
        "b": [_equivalent_row(row) for row in equivalent.b],
    }


def _equivalent_row(row: Collective) -> EquivalentRow:
    return {
        "name": row.name,
        "kind": row.kind,
        "axes": row.axes,
        "where": scope_or_path(row),
        "payload_bytes": row.payload_bytes,
        "executions": row.executions,
    }
