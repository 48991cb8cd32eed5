"""The tools that a run can be written for.  One row each: what writes one program's folder, and returns its name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from compare.export.folder.exported_programs import SelectedProgram
    from compare.export.folder.write_folder import ExportFolder

Write = Callable[["SelectedProgram", "ExportFolder"], str]


class Target(NamedTuple):
    """A tool."""

    write: Write
    platforms: tuple[str, ...]
    """Whose programs it takes."""
    write_with_facts: Write | None = None
    """Where verdicts can go with it."""


def _write_ccl_bench(program: "SelectedProgram", export: "ExportFolder") -> str:
    from compare.export.ccl_bench.directory import write

    return write(program, export)


def _write_chakra(program: "SelectedProgram", export: "ExportFolder") -> str:
    from compare.export.chakra.chakra_folder import write

    return write(program, export)


def _write_chakra_with_facts(program: "SelectedProgram", export: "ExportFolder") -> str:
    from compare.export.chakra.chakra_folder import write_with_facts

    return write_with_facts(program, export)


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "ccl-bench": Target(write=_write_ccl_bench, platforms=("tpu", "cpu")),
        "chakra": Target(write=_write_chakra, write_with_facts=_write_chakra_with_facts, platforms=("tpu",)),
    }
)
"""What writes is loaded when it does: a command line is read without it."""
