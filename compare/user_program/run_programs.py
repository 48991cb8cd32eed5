"""The compiled programs of a run folder, and the modelled step of any compiled program."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.report.build import DEFAULT_CELL
from compare.report.programs import JudgedProgram, judge_programs
from compare.run.errors import WorkError
from compare.run.folder.load_run import read_run
from compare.run.folder.replace_folder import CASE
from compare.run.folder.timelines import build_timelines
from compare.schedule.hardware import Hardware
from compare.user_program.program_mesh import format_axes
from compare.user_program.readings import Reading
from compare.user_program.step_time import StepTime, describe_step, model_program


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


def time_step(reading: Reading, *, topology: str = "") -> StepTime:
    """The modelled step of a program; of one of a run, what its report says.

    topology: what it was compiled for, where that is not recorded.  Raises `ValueError`, one line, where it cannot be
    modelled.
    """
    if topology and reading.topology and topology != reading.topology:
        raise WorkError(f"the program was compiled for {reading.topology}, not for {topology}")
    if not isinstance(reading, RunReading):
        return model_program(
            reading.module, reading.rows, topology=topology or reading.topology, axes=reading.axes, names=reading.names
        )
    times, key = build_timelines([reading.program], folder=reading.folder), reading.program.result.key
    if key not in times.by_key:
        raise WorkError(f"{'/'.join(key)} has no timeline: {times.errors.get(key, 'its program cannot be read')}")
    hardware = Hardware.of(times.chip or reading.program.case.topology.generation)
    return describe_step(
        times.by_key[key], reading.module, reading.rows, hardware=hardware, axes=reading.axes, names=reading.names
    )
