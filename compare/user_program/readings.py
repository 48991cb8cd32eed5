"""A compiled program that a path names: a file or a saved program; those of a run folder are in `run_programs.py`."""

from collections.abc import Mapping
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
from compare.run.folder.replace_folder import CASE, is_cell
from compare.user_program.advice.advise import advise
from compare.user_program.program_mesh import check_axes, reading_axes
from compare.user_program.saved_program import is_saved, read_saved


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


def is_of_run(path: Path) -> bool:
    """Whether it is a run folder, or one program of it (RUN/jax/decode/tpu)."""
    return path.is_dir() and ((path / CASE).is_file() or is_cell(path))


def read_program(path: str, *, axes: Mapping[str, int], names: SourceNames) -> Reading:
    """A file (`-`: standard input), or a folder of `table.save`.  `ValueError`, one line, for anything else."""
    if not is_saved(Path(path)):
        module = read_file(path, binary=write_hlo_text)
        try:
            check_partitioned(module)
            check_axes(axes, module.num_devices)
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
