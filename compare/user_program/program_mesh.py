"""The mesh that a program knows itself: the names and sizes of its axes, outermost first."""

import re
from collections.abc import Iterable, Iterator, Mapping

from compare.hlo.text.errors import HloError

Axes = tuple[tuple[str, int], ...]
"""Names and sizes; none where a program does not know its mesh, or knows several."""

_MESH = re.compile(r"sdy\.mesh @\S+ = <\[(.*?)\](, device_ids=\[[^\]]*\])?>")
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"=(\d+)')
_HEAD = 1_000_000
"""Characters of StableHLO, at the beginning of which Shardy's meshes stand."""


def mesh_of_text(text: str) -> Axes:
    """The mesh of StableHLO text; one whose devices are in another order is not told by its axes alone."""
    found = _MESH.findall(text[:_HEAD])
    return _only(tuple((name, int(size)) for name, size in _AXIS.findall(axes)) for axes, ids in found if not ids)


def mesh_of(program: object) -> Axes:
    """The mesh of a `Lowered` or `Compiled` of JAX, from the shardings of its arguments and results."""
    told = [getattr(program, name, None) for name in ("input_shardings", "output_shardings", "out_info")]
    lowering = getattr(getattr(program, "_lowering", None), "compile_args", None)  # a private name of jax 0.10.2
    if isinstance(lowering, Mapping):
        told.append(lowering.get("in_shardings"))
    return _only(map(_axes_of, _leaves(told)))


def reading_axes(axes: Mapping[str, int], mesh: Axes, *, name: str) -> Mapping[str, int]:
    """The axes to read a program with: those given, else its own.

    Axes may have other names than the mesh's, or divide it differently; an axis of the mesh's name must have its size
    and its place, else `HloError`.
    """
    own = dict(mesh)
    if not axes:
        return own
    known = [axis for axis, size in axes.items() if axis in own and (size > 1 or own[axis] > 1)]
    in_order = [axis for axis in own if axis in known]
    if known == in_order and all(axes[axis] == own[axis] for axis in known):
        return axes
    raise HloError(
        f"{name}: the axes are {format_axes(axes)}, and its own mesh is {format_axes(own)}, outermost first; give them "
        "as the mesh has them, or leave them out"
    )


def format_axes(axes: Mapping[str, int]) -> str:
    return ",".join(f"{axis}={size}" for axis, size in axes.items())


def _only(found: Iterable[Axes]) -> Axes:
    """The one that all agree on."""
    different = {axes for axes in found if axes}
    return different.pop() if len(different) == 1 else ()


def _leaves(told: object) -> Iterator[object]:
    if isinstance(told, Mapping):
        told = list(told.values())
    if isinstance(told, list | tuple):
        for each in told:
            yield from _leaves(each)
    else:
        yield told


def _axes_of(leaf: object) -> Axes:
    """Of a sharding, or of an array with one."""
    shape = getattr(getattr(getattr(leaf, "sharding", leaf), "mesh", None), "shape", None)
    if not isinstance(shape, Mapping):
        return ()
    return tuple((str(axis), size) for axis, size in shape.items() if isinstance(size, int))
