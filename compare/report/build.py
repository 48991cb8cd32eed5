"""The report of a run as one plain value, which `report.json`, the tables, the page and the terminal all read."""

from collections.abc import Mapping, Sequence
from typing import Any

from compare.contract.notes import notes
from compare.contract.reference_algorithms import inherent
from compare.contract.row import ContractRow
from compare.report.attribution import attribution
from compare.report.controls import changed, showed
from compare.report.differences import differences
from compare.report.frameworks import Cell, Split, compared, pairs, splits
from compare.report.headline import headline, verdict_sentence
from compare.report.origins import origins
from compare.report.programs import GOOD, CellResult, Judged
from compare.report.rows import inherent_row, row, served_rows, totals
from meshes.assignment import chips
from meshes.case import Case

SCHEMA = 1
"""Raised when a script that reads the report would have to change; new fields do not raise it."""

DEFAULT_CELL = "tpu"

_FOUND = ("versions", "compile_options", "seconds", "memory", "cost", "loop", "attention", "style", "program_digest")
"""Of a cell's `about.json`, what the report repeats."""


_EXECUTED = ("label", "executed")
"""And, of one that was run, how."""


def summarize(case: Case, cells: Sequence[Judged], *, titles: Mapping[str, str]) -> dict[str, Any]:
    """Read and judge every program of a run.  `titles` are the names of the arms, in the order of the report."""
    phases = {phase: _phase(case.at(phases=(phase,)), cells, list(titles)) for phase in case.phases}
    for phase in phases.values():
        phase["headline"] = headline(phase, titles=titles)
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "sentence": "",
        "case": case.to_dict(),
        "mesh": mesh_picture(case),
        "arms": {arm: _arm(arm, title, [cell.result for cell in cells]) for arm, title in titles.items()},
        "controls": _controls(phases),
        "phases": phases,
    }
    return {**report, "sentence": verdict_sentence(report)}


def plan(case: Case) -> dict[str, Any]:
    """The contract alone, as `compare.plan --json` prints it."""
    return {"case": case.to_dict(), "phases": {phase: _planned(case.at(phases=(phase,))) for phase in case.phases}}


def _planned(case: Case) -> dict[str, Any]:
    """The contract of one phase."""
    rows = inherent(case)
    total = sum(entry.step_wire_bytes for entry in rows)
    return {"inherent": [inherent_row(entry) for entry in rows], "total": total, "notes": notes(case)}


def mesh_picture(case: Case) -> dict[str, Any]:
    """Where each device is: its coordinates on the mesh, its chip on the torus, the groups of each axis."""
    topology = case.topology
    places = chips(case.plan)
    return {
        "name": case.mesh.name,
        "topology": topology.name,
        "sides": list(topology.sides),
        "wraps": list(topology.wraps),
        "slices": topology.slices,
        "devices": [
            {"id": device, "coordinates": dict(at), "place": place._asdict()}
            for device, (at, place) in enumerate(zip(case.mesh.coordinates, places, strict=True))
        ],
        "groups": {axis: [list(group) for group in case.mesh.groups(axis)] for axis in case.mesh.split_axes},
    }


def _arm(arm: str, title: str, results: Sequence[CellResult]) -> dict[str, Any]:
    own = [result for result in results if result.arm == arm]
    bad = [result for result in own if result.status not in GOOD]
    versions: dict[str, str] = {}
    for result in own:
        versions |= (result.about or {}).get("versions", {})
    return {
        "title": title,
        "status": bad[0].status if bad else "ok" if own else "not asked",
        "error": bad[0].error if bad else None,
        "versions": versions,
    }


def _phase(case: Case, cells: Sequence[Judged], arms: Sequence[str]) -> dict[str, Any]:
    contract = inherent(case)
    own = [cell for cell in cells if cell.case.phases == case.phases]
    tables = {arm: _entries(own, arm, executed=False) for arm in arms}
    tables = {arm: table for arm, table in tables.items() if table}
    ran = {arm: _entries(own, arm, executed=True) for arm in tables}
    judged = {arm: _judged(table) for arm, table in tables.items()}
    parts = splits(judged)
    for arm, table in tables.items():
        _add_parts(table, parts.get(arm))
        _add_parts(ran[arm], None)
    chosen = compared(judged) or {arm: found[0] for arm, found in judged.items() if found}
    others = {
        arm: {cell.name: cell.rows for cell in found if cell is not chosen.get(arm)} for arm, found in judged.items()
    }
    return {
        "inherent": _inherent_rows(contract, tables),
        "inherent_total": sum(r.step_wire_bytes for r in contract),
        "notes": notes(case),
        "compared_cells": {arm: cell.name for arm, cell in chosen.items()},
        "arms": {arm: _with_controls(table) | {"profiles": ran[arm]} for arm, table in tables.items()},
        "differences": differences(
            {arm: cell.rows for arm, cell in chosen.items()}, controls=others, axes=case.mesh.split_axes
        ),
        "pairs": pairs(judged),
        "attribution": attribution(tables, default=DEFAULT_CELL),
    }


def _controls(phases: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each control of each arm: what it changes, and what that did to each phase."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for phase, told in phases.items():
        for arm, default in told["arms"].items():
            for cell, entry in default["controls"].items():
                one = found.setdefault((arm, cell), {"arm": arm, "cell": cell, "changes": [], "phases": {}})
                one["changes"] = list(changed(default, entry)) or one["changes"]
                one["phases"][phase] = showed(default, entry)
    return list(found.values())


def _entries(cells: Sequence[Judged], arm: str, *, executed: bool) -> dict[str, dict[str, Any]]:
    """Cell -> its entry: of the compiled programs, or of those that were run."""
    own = [cell for cell in cells if cell.result.arm == arm and bool(cell.result.executed) is executed]
    return {cell.result.cell: _entry(cell) for cell in own}


def _entry(cell: Judged) -> dict[str, Any]:
    """One judged program, or why there is none."""
    about = cell.about
    base = {"cell": cell.result.cell, "status": cell.result.status, "error": cell.result.error,
            "partitioner": about.get("partitioner"), **{name: about.get(name) for name in _FOUND}}  # fmt: skip
    if cell.result.executed:
        base |= {"case": cell.case.to_dict(), **{name: about.get(name) for name in _EXECUTED}}
    if cell.judgement is None:
        return {**base, "collectives": [], "origins": [], "served": [], "totals": None}
    rows = [row(verdict) for verdict in cell.judgement.verdicts]
    if cell.result.executed:
        # A runtime's own copy of a program can have stale lines (torch_xla's scan bodies do); the compiled one has
        # them.
        rows = [{**one, "source_line": None} for one in rows]
    return {
        **base,
        "collectives": rows,
        "origins": origins(rows),
        "origins_why_not": cell.why_no_lives,
        "served": served_rows(cell.judgement, cell.contract),
        "totals": totals(cell.judgement, cell.contract).to_dict(),
    }


def _judged(table: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """The judged cells of an arm, the default first; none where the default failed: a control can't stand for it."""
    default = table.get(DEFAULT_CELL)
    if not default or not default["totals"]:
        return []
    good = [
        Cell(name, entry["partitioner"], entry["collectives"], alike=set(changed(default, entry)) <= {"partitioner"})
        for name, entry in table.items()
        if entry["totals"]
    ]
    return sorted(good, key=lambda cell: cell.name != DEFAULT_CELL)


def _add_parts(table: Mapping[str, dict[str, Any]], split: Split | None) -> None:
    """What is common and what is the framework's, beside the totals of the default cell and of the compared one.

    split: None where none of these was compared, as of programs that were run.
    """
    for name, cell in table.items():
        if cell["totals"] is None:
            continue
        told = split is not None and name in (DEFAULT_CELL, split.cell)
        cell["totals"] |= {
            "common": split.common if split and told else None,
            "framework_induced": split.framework_induced if split and told else None,
            "partitioner_induced": (split.partitioner_induced if name != split.cell else 0) if split and told else None,
        }


def _inherent_rows(contract: Sequence[ContractRow], cells: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The contract, with what every judged arm's default program serves of it: the least of them."""
    good = [table[DEFAULT_CELL]["served"] for table in cells.values() if table.get(DEFAULT_CELL, {}).get("served")]
    return [
        inherent_row(entry, served_bytes=_least([rows[number]["served_bytes"] for rows in good]))
        for number, entry in enumerate(contract)
    ]


def _least(served: Sequence[int | None]) -> int | None:
    """The smallest; unknown where there is none, or any is unknown."""
    known = [amount for amount in served if amount is not None]
    return min(known) if known and len(known) == len(served) else None


def _with_controls(table: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    default = table.get(DEFAULT_CELL, next(iter(table.values())))
    return {**default, "controls": {name: cell for name, cell in table.items() if cell is not default}}
