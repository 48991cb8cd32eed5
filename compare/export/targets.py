"""The tools that a run can be written for.  One row each: what writes one program's folder, and returns its name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compare.export.ccl_bench import directory
from compare.export.chakra import chakra_folder
from compare.export.folder.exported_programs import SelectedProgram
from compare.export.folder.write_folder import ExportFolder

Write = Callable[[SelectedProgram, ExportFolder], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A tool."""

    write: Write
    write_with_facts: Write | None = None
    """Where verdicts can go with it."""
    platforms: tuple[str, ...]
    """Whose programs it takes."""


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "ccl-bench": Target(write=directory.write, platforms=("tpu", "cpu")),
        "chakra": Target(
            write=chakra_folder.write, write_with_facts=chakra_folder.write_with_facts, platforms=("tpu",)
        ),
    }
)
