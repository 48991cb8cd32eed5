"""The compiled programs that a path names: a file or a saved program is one, a run folder has several."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.pre_partitioning import check_partitioned
from compare.hlo.collectives.replicated import replicated_notes
from compare.hlo.proto.program import write_hlo_text
from compare.hlo.text.errors import HloError
from compare.hlo.text.files import read_file
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module, read
from compare.report.build import DEFAULT_CELL
from compare.report.programs import JudgedProgram, judge_programs
from compare.run.errors import WorkError
from compare.run.folder.load_run import read_run
from compare.run.folder.replace_folder import CASE
from compare.run.folder.timelines import build_timelines
from compare.schedule.hardware import Hardware
from compare.user_program.advice.advise import advise
from compare.user_program.program_mesh import format_axes, reading_axes
from compare.user_program.saved_program import is_saved, read_saved
from compare.user_program.step_time import StepTime, describe_step, model_program


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One compiled program, read."""

    name: str = ""
    """`jax/decode/tpu` of a run folder; empty for a program that was named alone."""
    module: Module
    rows: tuple[Collective, ...]
    compiled: str = ""
    """Target and compiler, where it was compiled here."""
    notes: tuple[str, ...] = ()
    axes: Mapping[str, int] = field(default_factory=dict)
    names: SourceNames = field(default_factory=SourceNames)
    topology: str = ""
    """What it was compiled for; empty where that is not recorded."""
    program: JudgedProgram | None = None
    """Of a run."""
    folder: Path = Path()
    """The run folder."""


def is_of_run(path: Path) -> bool:
    """Whether it is a run folder, or one program of it (RUN/jax/decode/tpu)."""
    return path.is_dir() and ((path / CASE).is_file() or _is_cell(path))


def _is_cell(path: Path) -> bool:
    folders = path.resolve().parents
    return (path / "about.json").is_file() and len(folders) > 2 and (folders[2] / CASE).is_file()


def read_program(path: str, *, axes: Mapping[str, int], names: SourceNames) -> Reading:
    """A file (`-`: standard input), or a folder of `table.save`.  `ValueError`, one line, for anything else."""
    if not is_saved(Path(path)):
        module = read_file(path, binary=write_hlo_text)
        try:
            check_partitioned(module)
        except HloError as error:
            raise HloError(f"{path}: {error}") from None
        rows = tuple(collectives(module, axes, names=names))
        notes = (*replicated_notes(module), *advise(rows, module))
        return Reading(module=module, rows=rows, notes=notes, axes=axes, names=names)
    saved = read_saved(Path(path))
    module, axes = read(saved.text), reading_axes(axes, tuple(saved.axes.items()), name=path)
    names = names.fill_from(saved.names)
    rows = tuple(collectives(module, axes, device_ids=saved.device_ids, names=names))
    return Reading(
        module=module,
        rows=rows,
        compiled=saved.compiled,
        notes=saved.notes,
        axes=axes,
        names=names,
        topology=saved.topology,
    )


def read_run_programs(path: Path, *, words: Sequence[str]) -> Iterator[Reading]:
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
        yield Reading(
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
    if reading.program is None:
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
