"""The compiled programs of a run folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.report.model.program import DEFAULT_CELL
from compare.report.programs import JudgedProgram, judge_programs
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


def read_run_programs(path: Path, *, words: Sequence[str]) -> Iterator[RunReading]:
    """The compiled programs of a run folder that have these words (arm, phase, cell; "" for any), or of its one cell.

    Without a cell, the default ones.  `WorkError` where there is none.
    """
    folder = path if (path / CASE).is_file() else path.resolve().parents[2]
    wanted = path.resolve().parts[-3:] if folder is not path else (*words[:2], words[2] or DEFAULT_CELL)
    run = read_run(folder)
    programs = [program for program in judge_programs(run.case, run.select(wanted)) if program.module is not None]
    for program in programs:
        assert program.module is not None
        plan = program.case.plan
        yield RunReading(
            name="/".join(program.result.key) if folder is path else "",
            module=program.module,
            rows=program.rows,
            notes=(f"mesh {plan.name} on {plan.topology.name}, axes {format_axes(plan.mesh.split_axes)}",),
            axes=plan.mesh.split_axes,
            topology=plan.topology.name,
            program=program,
            folder=folder,
        )
    if not programs:
        asked = "/".join(word or "*" for word in wanted)
        known = ", ".join("/".join(result.key) for result in run.results if result.hlo is not None)
        raise WorkError(f"{folder} has no program {asked} that was compiled; it has {known or 'none'}")
