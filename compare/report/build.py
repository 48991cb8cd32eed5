"""The report of a run, built from its judged programs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compare.contract.notes import list_notes
from compare.contract.reference_algorithms import required_rows
from compare.contract.row import ContractRow
from compare.report.attribution import attribute_groups
from compare.report.compiler_options import option_of
from compare.report.controls import compare_control, list_changes
from compare.report.differences import find_differences
from compare.report.frameworks import Candidate, ExcessSplit, choose_compared, compare_by_partitioner, split_excess
from compare.report.headline import headline_rows, verdict_sentence
from compare.report.model.codec import copy_fields
from compare.report.model.contract import ServedRow
from compare.report.model.findings import Control, ControlPhase
from compare.report.model.mesh import Device, DeviceMesh
from compare.report.model.program import DEFAULT_CELL, ArmPrograms, Execution, ProgramReport
from compare.report.model.report import SCHEMA, ArmInfo, PhaseReport, Report
from compare.report.plan import served_row
from compare.report.programs import GOOD, JudgedProgram, ProgramResult
from compare.report.rows import collective_row, origin_totals, served_rows, sum_totals
from meshes.assignment import assign_chips
from meshes.case import Case

Programs = Mapping[str, ProgramReport]
"""Cell -> its program."""


def build_report(case: Case, programs: Sequence[JudgedProgram], *, titles: Mapping[str, str]) -> Report:
    """The report without times.  `titles`: arm -> its name, in the order of the report."""
    phases = {phase: _phase(case.at(phases=(phase,)), programs, titles) for phase in case.phases}
    report = Report(
        schema=SCHEMA,
        sentence="",
        case=case,
        mesh=lay_out_mesh(case),
        arms={arm: _arm(arm, title, [program.result for program in programs]) for arm, title in titles.items()},
        controls=_controls(phases),
        phases=phases,
    )
    return replace(report, sentence=verdict_sentence(report))


def lay_out_mesh(case: Case) -> DeviceMesh:
    """Where each device is: its coordinates on the mesh, its chip on the torus, the groups of each axis."""
    topology = case.topology
    places = zip(case.mesh.coordinates, assign_chips(case.plan), strict=True)
    return DeviceMesh(
        name=case.mesh.name,
        topology=topology.name,
        sides=tuple(topology.sides),
        wraps=tuple(topology.wraps),
        slices=topology.slices,
        devices=tuple(
            Device(id=id, coordinates=dict(coordinates), place=place) for id, (coordinates, place) in enumerate(places)
        ),
        groups={axis: tuple(map(tuple, case.mesh.groups(axis))) for axis in case.mesh.split_axes},
    )


def _arm(arm: str, title: str, results: Sequence[ProgramResult]) -> ArmInfo:
    results = [result for result in results if result.arm == arm]
    bad = [result for result in results if result.status not in GOOD]
    versions: dict[str, str] = {}
    for result in results:
        versions |= (result.about and result.about.versions) or {}
    return ArmInfo(
        title=title,
        status=bad[0].status if bad else "ok" if results else "not asked",
        error=bad[0].error if bad else None,
        versions=versions,
    )


def _phase(case: Case, programs: Sequence[JudgedProgram], titles: Mapping[str, str]) -> PhaseReport:
    contract = required_rows(case)
    required = sum(row.step_wire_bytes for row in contract)
    programs = [program for program in programs if program.case.phases == case.phases]
    witnesses = {
        arm: _table([program for program in programs if program.result.witness], arm, executed=False) for arm in titles
    }
    programs = [program for program in programs if not program.result.witness]
    tables = {arm: table for arm in titles if (table := _table(programs, arm, executed=False))}
    candidates = {arm: _candidates(table) for arm, table in tables.items()}
    splits = split_excess(candidates)
    arms = {arm: _with_split(table, splits.get(arm)) for arm, table in tables.items()}
    chosen = choose_compared(candidates) or {
        arm: arm_candidates[0] for arm, arm_candidates in candidates.items() if arm_candidates
    }
    others = {
        arm: {candidate.cell: candidate.rows for candidate in arm_candidates if candidate is not chosen.get(arm)}
        for arm, arm_candidates in candidates.items()
    }
    by_arm = {
        arm: _arm_programs(table, _table(programs, arm, executed=True), witnesses[arm]) for arm, table in arms.items()
    }
    return PhaseReport(
        inherent=_least_served(contract, tables),
        inherent_total=required,
        notes=tuple(list_notes(case)),
        compared_cells={arm: candidate.cell for arm, candidate in chosen.items()},
        arms=by_arm,
        differences=find_differences(
            {arm: candidate.rows for arm, candidate in chosen.items()}, controls=others, axes=case.mesh.split_axes
        ),
        pairs=compare_by_partitioner(candidates),
        attribution=attribute_groups(tables, default=DEFAULT_CELL),
        headline=headline_rows(by_arm, required_bytes=required, titles=titles),
    )


def _controls(phases: Mapping[str, PhaseReport]) -> tuple[Control, ...]:
    """One entry for each control of each arm: what it changes, and what that did to each phase."""
    changes: dict[tuple[str, str], tuple[str, ...]] = {}
    effects: dict[tuple[str, str], dict[str, ControlPhase]] = {}
    for phase, contents in phases.items():
        for arm, programs in contents.arms.items():
            for cell, control in programs.controls.items():
                key = arm, cell
                changes[key] = list_changes(programs.default, control) or changes.get(key, ())
                effects.setdefault(key, {})[phase] = compare_control(programs.default, control)
    return tuple(
        Control(arm=arm, cell=cell, changes=changes[arm, cell], phases=by_phase)
        for (arm, cell), by_phase in effects.items()
    )


def _table(programs: Sequence[JudgedProgram], arm: str, *, executed: bool) -> dict[str, ProgramReport]:
    """Cell -> its program: of those that were compiled, or of those that were run."""
    chosen = [program for program in programs if program.result.arm == arm]
    return {program.result.cell: _program(program) for program in chosen if bool(program.result.executed) is executed}


def _program(program: JudgedProgram) -> ProgramReport:
    """One judged program, or why there is none."""
    about, result, judgement = program.about, program.result, program.judgement
    rows = tuple(collective_row(verdict) for verdict in judgement.verdicts) if judgement else ()
    if result.executed:
        # A runtime's copy of a program can have stale lines (torch_xla's scan bodies do); the compile has them.
        rows = tuple(replace(row, source_line=None) for row in rows)
    return copy_fields(
        about,
        ProgramReport,
        cell=result.cell,
        status=result.status,
        error=result.error,
        execution=_execution(program),
        collectives=rows,
        origins=origin_totals(rows),
        origins_why_not=program.why_no_lineage if judgement else None,
        served=served_rows(judgement, program.contract) if judgement else (),
        totals=sum_totals(judgement, program.contract) if judgement else None,
    )


def _execution(program: JudgedProgram) -> Execution | None:
    if not program.result.executed:
        return None
    return Execution(case=program.case, label=program.about.label, executed=program.about.executed)


def _candidates(table: Programs) -> list[Candidate]:
    """The judged programs of an arm, the default first; none where that failed: a control cannot replace it."""
    default = table.get(DEFAULT_CELL)
    if not default or not default.totals:
        return []
    judged = [
        Candidate(
            cell, program.partitioner, program.collectives, alike=set(list_changes(default, program)) <= {"partitioner"}
        )
        for cell, program in table.items()
        if program.totals and not option_of(cell)
    ]
    return sorted(judged, key=lambda candidate: candidate.cell != DEFAULT_CELL)


def _with_split(table: Programs, split: ExcessSplit | None) -> dict[str, ProgramReport]:
    """The programs, with the split of excess bytes in the totals of the default program and of the compared one."""
    return {
        cell: replace(
            program,
            totals=replace(
                program.totals,
                common=split.common,
                framework_induced=split.framework_induced,
                partitioner_induced=0 if cell == split.cell else split.partitioner_induced,
            ),
        )
        if split and program.totals and cell in (DEFAULT_CELL, split.cell)
        else program
        for cell, program in table.items()
    }


def _arm_programs(table: Programs, profiles: Programs, witnesses: Programs) -> ArmPrograms:
    default = table.get(DEFAULT_CELL, next(iter(table.values())))
    controls = {cell: program for cell, program in table.items() if program is not default}
    return ArmPrograms(default=default, controls=controls, profiles=profiles, witnesses=witnesses or None)


def _least_served(contract: Sequence[ContractRow], tables: Mapping[str, Programs]) -> tuple[ServedRow, ...]:
    """The contract, each row with the least bytes that any judged arm's default program satisfies."""
    defaults = [table[DEFAULT_CELL].served for table in tables.values() if DEFAULT_CELL in table]
    served = [rows for rows in defaults if rows]
    return tuple(
        served_row(row, served_bytes=_least([rows[index].served_bytes for rows in served]))
        for index, row in enumerate(contract)
    )


def _least(served: Sequence[int | None]) -> int | None:
    """The smallest; `None` where there is none, or any is unknown."""
    known = [amount for amount in served if amount is not None]
    return min(known) if known and len(known) == len(served) else None
