"""One's own program in Python: `from compare import collectives, assert_collectives` (docs/own_program.md)."""

from collections.abc import Mapping
from typing import Any

from compare.diff.own.expected import COUNTS, find_surprises
from compare.diff.own.table import Table, assertion_message
from compare.hlo.devices.axes import read_axes, validate_axes
from compare.hlo.text.errors import HloError
from compare.user_program.read_program import open_program, read_all
from meshes.mesh_argument import read_mesh


def collectives(
    program: Any, *, axes: Mapping[str, int] | str | None = None, mesh: str = "", topology: str = ""
) -> Table:
    """The collectives of a program, as a table that a notebook shows.

    program: a JAX `Lowered` or `Compiled` (anything with `.compile().as_text()` or `.as_text()`), HLO or StableHLO
        text, module bytes (StableHLO bytecode, HLO protocol buffers, gzipped or not), or a path.
    axes: sizes by name, outermost first, `{"data": 2, "tensor": 4}` or `"data=2,tensor=4"`; or `mesh`, like `tp4pp2`.
        None: those of the program's own mesh, where it knows that (JAX's do).
    topology: compile for this TPU (`v5e:2x4`), which need not be there, by libtpu in a process of its own.  Without it
        JAX compiles what it lowered for its own devices; what nobody can compile here goes to the smallest v5e slice.
    `ValueError`, one line, where it can't be read, compiled, or is of other axes.
    """
    sizes = _axes(axes, mesh)
    (found,) = read_all([open_program(program, topology=topology)], axes=sizes, topology=topology)
    return Table(found.rows, found.saved.axes, found.compiled, found.saved, dict(found.mesh))


def assert_collectives(
    program: Any,
    expected: Mapping[str, int],
    *,
    axes: Mapping[str, int] | str | None = None,
    mesh: str = "",
    topology: str = "",
    count: str = COUNTS[0],
) -> None:
    """Raise `AssertionError` unless the program emits just these: `assert_collectives(table, {"all-reduce@tp": 2})`.

    program: a table, or what `collectives` takes, with its axes.
    expected: what is not named must not be there; `{}` is a program that does not communicate.
    count: `instructions` of the program, or their `executions` in a step, loops counted.
    """
    table = program if isinstance(program, Table) else collectives(program, axes=axes, mesh=mesh, topology=topology)
    found = find_surprises(table.rows, expected, axes=table.axes, count=count)
    if found:
        raise AssertionError(assertion_message(found, table, count=count))


def _axes(axes: Mapping[str, int] | str | None, mesh: str) -> Mapping[str, int]:
    if mesh and axes:
        raise HloError(f"the axes are named twice, by axes={axes!r} and by mesh={mesh!r}")
    if mesh:
        plan = read_mesh(mesh).mesh
        return plan.split_axes or plan.axes
    return read_axes(axes) if axes is None or isinstance(axes, str) else validate_axes(axes)
