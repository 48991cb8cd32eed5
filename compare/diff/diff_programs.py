"""The diff of two programs, each a file or a folder."""

from collections.abc import Mapping

from compare.diff.diff_report import diff_report
from compare.diff.matching import match
from compare.diff.result import ProgramsDiff
from compare.run.errors import WorkError
from compare.user_program.program_mesh import format_axes
from compare.user_program.read_program import open_program, read_all


def diff_programs(
    a: str, b: str, *, axes: Mapping[str, int], topology: str = "", no_cache: bool = False
) -> ProgramsDiff:
    """The diff of two files, or folders of saved programs, which are compiled first if need be.

    axes: if empty, those that the programs record, which must be equal.
    """
    first, second = read_all([open_program(a), open_program(b)], axes=axes, topology=topology, no_cache=no_cache)
    if first.saved.axes and second.saved.axes and dict(first.saved.axes) != dict(second.saved.axes):
        axes_of = f"{a} has the axes {format_axes(first.saved.axes)}, {b} has {format_axes(second.saved.axes)}"
        raise WorkError(f"{axes_of}; pass the axes of both with --axes")
    compiled = first.compiled, second.compiled
    return diff_report(match(first.rows, second.rows), names=(a, b), axes=second.saved.axes, compiled=compiled)
