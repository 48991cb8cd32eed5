"""The result of a sweep as one value, which `sweep.json`, the table, the figure and the page all read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeGuard, cast

from msgspec import convert

from compare.report.model.codec import encode
from compare.report.model.findings import HeadlineRow
from compare.report.model.program import ProgramReport
from compare.report.model.report import PhaseReport, Report
from compare.run.arms import find_arm
from compare.sweep.combination import Combination
from compare.sweep.summary import CLASSES, EarlierRows, PhaseSummary, ProgramSummary, ResultRow, Sweep
from meshes.process.documents import read_json

SCHEMA: Literal[1] = 1
"""Raised when a script that reads sweep.json would have to change; new fields do not raise it."""

_OPTIONS = ("batch", "seq", "microbatches", "capacity", "dtype", "loop", "attention")
"""Options of a case that the result repeats."""

_ASKED = ("meshes", "models", "checkpoint", "phases", "arm", *_OPTIONS)
"""Options that choose the programs, as opposed to how they are compiled."""

FILE = "sweep.json"

NOTHING: EarlierRows = {"arms": {}, "results": []}


def result_row(
    combination: Combination, *, status: str, error: str = "", folder: str | None = None, report: Report | None = None
) -> ResultRow:
    """The result of one combination.  folder: the name of its run folder; report: that folder's report."""
    case = combination.case.to_dict() if combination.case else {}
    row = {
        "model": combination.model,
        "mesh": combination.mesh,
        "status": status,
        "error": error,
        "case": case.get("name"),
        "topology": case.get("topology"),
        "num_devices": combination.case.mesh.num_devices if combination.case else None,
        **{name: case.get(name) for name in _OPTIONS},
        "experts": combination.case.model.experts if combination.case else None,
        "folder": folder,
        "phases": {name: _phase(phase) for name, phase in report.phases.items()} if report else {},
    }
    return cast(ResultRow, row)  # `check_row` holds it to the schema


def earlier_rows(out: Path, results: Sequence[ResultRow]) -> EarlierRows:
    """The rows of an earlier sweep into this folder whose run folders still exist and are not in `results`.

    No rows if its file is damaged or of another schema; its run folders are left as they are.
    """
    try:
        value = read_json(out / FILE)
        check_sweep(value)
        before = cast(Sweep, value)
        replaced = {result["folder"] for result in results}
        rows: list[ResultRow] = []
        for row in before["results"]:
            folder = row["folder"]
            if _plain(folder) and folder not in replaced and (out / folder / "report.json").is_file():
                rows.append({**row, "earlier": True})
        return {"arms": dict(before["arms"]), "results": rows} if rows else NOTHING
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return NOTHING


def check_sweep(sweep: object) -> None:
    """Raise `ValueError` where this is not what `sweep.schema.json` describes."""
    for row in convert(sweep, Sweep)["results"]:
        _check_whole(row)


def check_row(row: object) -> None:
    """The same for one of its results."""
    _check_whole(convert(row, ResultRow))


def _check_whole(row: ResultRow) -> None:
    """Raise `ValueError` if a row with a case lacks one of the case's numbers, or an energy a class of kernels."""
    for word in ("num_devices", "batch", "seq", "microbatches"):
        if row["case"] is not None and row.get(word) is None:
            raise ValueError(f"the row has a case, and no {word}")
    programs = (program for phase in row["phases"].values() for program in phase["programs"])
    for energy in (program["energy"] for program in programs if "energy" in program):
        if missing := set(CLASSES) - energy["kernels_ns"].keys():
            raise ValueError(f"an energy has no {' and no '.join(sorted(missing))}")


def _plain(name: object) -> TypeGuard[str]:
    """Whether this names an entry of the same folder, and no path out of it."""
    return isinstance(name, str) and Path(name).name == name and name not in ("", "..") and "\0" not in name


def build_summary(
    results: Sequence[ResultRow], *, asked: Mapping[str, object], arms: Sequence[str], before: EarlierRows = NOTHING
) -> Sweep:
    """The whole sweep; the rows of `before` follow its own results.  asked: all options of the request."""
    words = {name: value for name, value in sorted(asked.items()) if name in _ASKED}
    return {
        "schema": SCHEMA,
        "sentence": sentence(results) + _stay(len(before["results"])),
        "asked": {name: str(value) if isinstance(value, Path) else value for name, value in words.items()},
        "arms": {name: find_arm(name).title for name in arms}
        | {name: title for name, title in before["arms"].items() if name not in arms},
        "results": [*results, *before["results"]],
    }


def _stay(rows: int) -> str:
    return (
        f" {rows} row{'s' * (rows > 1)} of an earlier sweep in this folder {'is' if rows == 1 else 'are'} kept."
        if rows
        else ""
    )


def sentence(results: Sequence[ResultRow]) -> str:
    """How many combinations were judged, and which program has the largest ratio."""
    counts = {status: sum(result["status"] == status for result in results) for status in ("done", "refused")}
    failed = len(results) - sum(counts.values())
    words = f"{counts['done']} of {len(results)} combinations compiled and judged"
    others = [f"{number} {word}" for number, word in ((counts["refused"], "refused"), (failed, "failed")) if number]
    words += f" ({', '.join(others)})" if others else ""
    furthest = max(_ratios(results), default=None, key=lambda entry: entry[0])
    if furthest is None or furthest[0] <= 1:
        return f"{words}."
    ratio, furthest_result, phase, title = furthest
    number = f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"
    where = f"{title}, {furthest_result['model']} on {furthest_result['mesh']}, {phase}"
    return f"{words}. Largest ratio of emitted to inherent bytes: {number} × ({where})."


def is_complete(summary: Sweep) -> bool:
    """Whether every program of every possible case was compiled and judged."""
    return all(result["status"] in ("done", "refused") for result in summary["results"] if not result.get("earlier"))


def _ratios(results: Sequence[ResultRow]) -> Iterator[tuple[float, ResultRow, str, str]]:
    for result in results:
        for phase, summary in result["phases"].items():
            for program in summary["programs"]:
                if program["is_default"] and program["ratio"] is not None:
                    yield program["ratio"], result, phase, program["title"]


def _phase(phase: PhaseReport) -> PhaseSummary:
    entries = {(arm, program.cell): program for arm, programs in phase.arms.items() for program in programs.compiled}
    programs = [_program(line, phase, entries[line.arm, line.cell]) for line in phase.headline]
    return {"inherent_total": phase.inherent_total, "programs": programs}


def _program(line: HeadlineRow, phase: PhaseReport, program: ProgramReport) -> ProgramSummary:
    """A line of a report's headline, with where it is from, its bytes between slices, and its modelled times."""
    totals = program.totals
    modelled = program.timing.per_step if program.timing and program.timing.source == "modelled" else None
    own = {
        "is_default": line.cell == phase.arms[line.arm].default.cell,
        "is_compared": phase.compared_cells.get(line.arm) == line.cell,
        "unserved": totals.unserved if totals else None,
        "dcn_wire_bytes": totals.dcn_wire_bytes if totals else None,
        "modelled_step_ns": modelled.step_ns if modelled else None,
        "modelled_compute_ns": modelled.compute_ns if modelled else None,
        "modelled_exposed_ns": modelled.exposed_ns if modelled else None,
    }
    return cast(ProgramSummary, {**encode(line), **own})  # `check_row` holds it to the schema
