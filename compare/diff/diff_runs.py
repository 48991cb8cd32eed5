"""The diff of two run folders, program by program, or of one program of each."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from compare.diff.diff_report import SCHEMA, diff_report, diff_values
from compare.diff.matching import match
from compare.diff.result import CellDiff, ProgramsDiff, RunsDiff
from compare.report.model.codec import encode
from compare.report.model.report import Report
from compare.report.programs import MISSING, UNREADABLE, JudgedProgram, Key
from compare.run.errors import WorkError
from compare.run.folder.load_run import JudgedRun, judge_run, read_run


def diff_cells(a: Path, b: Path) -> ProgramsDiff:
    """The diff of two programs of run folders, over the axes of the second's case."""
    first, second = _cell(a), _cell(b)
    axes = second.case.mesh.split_axes
    return diff_report(match(first.rows, second.rows), names=(str(a), str(b)), axes=axes)


def _cell(path: Path) -> JudgedProgram:
    place = path.resolve()
    run = read_run(place.parents[2])
    (program,) = judge_run(replace(run, results=run.select(place.parts[-3:])).without_passes()).programs
    if program.result.status != "ok":
        raise WorkError(f"{path} has no program: {program.result.status}: {program.result.error}")
    return program


def diff_runs(a: Path, b: Path) -> RunsDiff:
    """The diff of two run folders, both judged again by the same rules."""
    runs = judge_run(read_run(a).without_passes()), judge_run(read_run(b).without_passes())
    return run_report((_cells(runs[0]), _cells(runs[1])), (runs[0].report(), runs[1].report()), names=(str(a), str(b)))


def _cells(run: JudgedRun) -> dict[Key, JudgedProgram]:
    """The programs that a run folder still has."""
    return {cell.result.key: cell for cell in run.programs if cell.result.status != MISSING}


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
        "same": diff["same"] and totals[0] == totals[1] if diff else status[0] == status[1] not in UNREADABLE,
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
