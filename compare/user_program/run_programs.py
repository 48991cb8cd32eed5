"""The compiled programs of a run folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.hlo.text.module import Module
from compare.report.model.program import DEFAULT_CELL
from compare.report.programs import JudgedProgram, describe_failure, judge_programs, list_failures
from compare.run.errors import WorkError
from compare.run.folder.load_run import read_run
from compare.run.folder.replace_folder import CASE
from compare.user_program.program_mesh import format_axes
from compare.user_program.readings import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReading(Reading):
    """One compiled program of a run."""

    program: JudgedProgram
    folder: Path
    """The run folder."""


def read_run_programs(path: Path, *, words: Sequence[str]) -> tuple[list[RunReading], tuple[str, ...]]:
    """The compiled programs of a run folder that have these words (arm, phase, cell; "" for any), or its one cell.

    Without a cell, the default ones.  And a line for each that failed, in the run or when it was read.  `WorkError`
    where there is none.
    """
    folder = path if (path / CASE).is_file() else path.resolve().parents[2]
    if folder is not path and any(words):
        raise WorkError(f"{path} is one program of a run; --framework, --phase and --variant belong to the run folder")
    wanted = path.resolve().parts[-3:] if folder is not path else (*words[:2], words[2] or DEFAULT_CELL)
    run = read_run(folder)
    programs = judge_programs(run.case, run.select(wanted))
    failures = list_failures(program.result for program in programs)
    readings = [
        _reading(program, program.module, folder, name="/".join(program.result.key) if folder is path else "")
        for program in programs
        if program.module is not None
    ]
    if failures and not readings:
        raise WorkError(f"{folder}: {describe_failure(programs[0].result)}")
    if not readings:
        asked = "/".join(word or "*" for word in wanted)
        known = ", ".join("/".join(result.key) for result in run.results if result.hlo is not None)
        raise WorkError(f"{folder} has no program {asked} that was compiled; it has {known or 'none'}")
    return readings, failures


def _reading(program: JudgedProgram, module: Module, folder: Path, *, name: str) -> RunReading:
    plan = program.case.plan
    return RunReading(
        name=name,
        module=module,
        rows=program.rows,
        notes=(f"mesh {plan.name} on {plan.topology.name}, axes {format_axes(plan.mesh.split_axes)}",),
        axes=plan.mesh.split_axes,
        topology=plan.topology.name,
        program=program,
        folder=folder,
    )
