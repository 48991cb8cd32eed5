"""The tools that a run can be written for.  One row each: what writes one program's folder, and returns its name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from compare.export.ccl_bench import directory
from compare.export.folder.programs import TimedProgram
from compare.export.folder.write_folder import ExportFolder

# Chakra execution traces will be a row `"chakra"` here, and a package `compare/export/chakra/` beside `ccl_bench/`.
TARGETS: Mapping[str, Callable[[TimedProgram, ExportFolder], str]] = MappingProxyType({
    "ccl-bench": directory.write,
})  # fmt: skip
