"""A diff as one value, which `--json`, the terminal and the page all read."""

from collections.abc import Iterable, Mapping, Sequence

from compare.diff.equivalents import Equivalent
from compare.diff.matching import Diff, DiffEntry, match
from compare.diff.result import (
    CellDiff,
    DifferenceEntry,
    DiffValues,
    EquivalentEntry,
    EquivalentRow,
    KindTotals,
    ProgramsDiff,
    ProgramSide,
    RunsDiff,
    Value,
)
from compare.hlo.collective import Collective
from compare.hlo.scope_key import path_of, scope_or_path
from compare.report.grouping import group_by
from compare.report.model.codec import encode
from compare.report.model.report import Report
from compare.report.programs import JudgedProgram

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


Key = tuple[str, str, str]
"""Arm, phase, cell."""


def run_report(
    cells: tuple[Mapping[Key, JudgedProgram], Mapping[Key, JudgedProgram]],
    reports: tuple[Report, Report],
    *,
    names: tuple[str, str],
) -> RunsDiff:
    """What `compare.diff RUN_A RUN_B --json` prints: the differences program by program."""
    a, b = cells
    programs = [_program(key, a[key], b[key], reports) for key in a if key in b]
    only_in_a = [list(key) for key in a if key not in b]
    only_in_b = [list(key) for key in b if key not in a]
    changed = _changes(*(report.case.to_dict() for report in reports))
    return {
        "schema": SCHEMA,
        "a": {"run": names[0], "case": reports[0].case.name},
        "b": {"run": names[1], "case": reports[1].case.name},
        "same": not (only_in_a or only_in_b or changed) and all(program["same"] for program in programs),
        "case_changes": changed,
        "versions": _versions(cells),
        "programs": programs,
        "only_in_a": only_in_a,
        "only_in_b": only_in_b,
    }


def _changes(a: Mapping[str, object], b: Mapping[str, object]) -> dict[str, list[object]]:
    return {name: [a.get(name), b.get(name)] for name in {**a, **b} if a.get(name) != b.get(name) and name != "name"}


def _versions(cells: tuple[Mapping[Key, JudgedProgram], Mapping[Key, JudgedProgram]]) -> dict[str, list[str | None]]:
    """Package -> its versions in the two runs, over all programs; those that differ first."""
    sides: list[dict[str, str]] = []
    for side in cells:
        sets: dict[str, set[str]] = {}
        for cell in side.values():
            for package, version in (cell.about.versions or {}).items():
                sets.setdefault(package, set()).add(version)
        sides.append({package: ", ".join(sorted(versions)) for package, versions in sets.items()})
    rows = {name: [side.get(name) for side in sides] for name in sorted({**sides[0], **sides[1]})}
    return dict(sorted(rows.items(), key=lambda row: row[1][0] == row[1][1]))


def _program(key: Key, a: JudgedProgram, b: JudgedProgram, reports: tuple[Report, Report]) -> CellDiff:
    arm, phase, cell = key
    totals = [_totals_of(report, key) for report in reports]
    status = [cell.result.status for cell in (a, b)]
    diff = diff_values(match(a.rows, b.rows)) if status == ["ok", "ok"] else None
    return {
        "arm": arm,
        "title": reports[1].arms[arm].title,
        "phase": phase,
        "cell": cell,
        "status": status,
        "error": [cell.result.error for cell in (a, b)],
        "partitioner": [cell.about.partitioner for cell in (a, b)],
        "totals": {name: [side.get(name) for side in totals] for name in {**totals[0], **totals[1]}},
        "same": diff["same"] and totals[0] == totals[1] if diff else status[0] == status[1],
        "alike": diff["alike"] if diff else None,
        "equivalents": diff["equivalents"] if diff else None,
        "differences": diff["differences"] if diff else None,
    }


def _totals_of(report: Report, key: Key) -> dict[str, int | None]:
    """The totals of a program; empty if it was not judged."""
    arm, phase, cell = key
    programs = report.phases[phase].arms.get(arm, ())
    totals = next((program.totals for program in programs if program.cell == cell), None)
    return encode(totals) if totals else {}
