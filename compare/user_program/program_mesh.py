"""The mesh recorded in a program: the names and sizes of its axes, outermost first."""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from compare.hlo.text.errors import HloError

Axes = tuple[tuple[str, int], ...]
"""(name, size) of each axis; empty where a program records no mesh, or several."""

_MESH = re.compile(r"sdy\.mesh @\S+ = <\[(.*?)\](, device_ids=\[[^\]]*\])?>")
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"=(\d+)')
_HEAD = 1_000_000
"""Characters of StableHLO to search: Shardy's meshes are at the beginning."""


def mesh_of_text(text: str) -> Axes:
    """The mesh of StableHLO text; meshes with a permuted device order are ignored: axes alone do not describe them."""
    meshes = _MESH.findall(text[:_HEAD])
    return _unanimous(tuple((name, int(size)) for name, size in _AXIS.findall(axes)) for axes, ids in meshes if not ids)


def mesh_of(program: object) -> Axes:
    """The mesh of a `Lowered` or `Compiled` of JAX, from the shardings of its arguments and results."""
    shardings = [getattr(program, name, None) for name in ("input_shardings", "output_shardings", "out_info")]
    lowering = getattr(getattr(program, "_lowering", None), "compile_args", None)  # a private name of jax 0.10.2
    if isinstance(lowering, Mapping):
        shardings.append(lowering.get("in_shardings"))
    return _unanimous(map(_axes_of, _leaves(shardings)))


def reading_axes(axes: Mapping[str, int], mesh: Axes, *, name: str) -> Mapping[str, int]:
    """The axes to read a program with: those given, else those of its mesh.

    Given axes may have other names than the mesh's, or divide it differently; axes of the same name must have the same
    size and order, else `HloError`.
    """
    program_axes = dict(mesh)
    if not axes:
        return program_axes
    known = [axis for axis, size in axes.items() if axis in program_axes and (size > 1 or program_axes[axis] > 1)]
    in_order = [axis for axis in program_axes if axis in known]
    if known == in_order and all(axes[axis] == program_axes[axis] for axis in known):
        return axes
    raise HloError(
        f"{name}: the axes are {format_axes(axes)}, and its own mesh is {format_axes(program_axes)}, outermost first; "
        "give them as the mesh has them, or leave them out"
    )


def check_axes(axes: Mapping[str, int], num_devices: int | None) -> None:
    """`HloError` where the axes are of more devices, or of fewer, than the program runs on; `None`: it does not say."""
    product = prod(axes.values())
    if axes and num_devices is not None and product != num_devices:
        raise HloError(
            f"the axes {format_axes(axes)} are of {product:,} devices, and the program is for {num_devices:,}; give "
            "each axis of its mesh with its size"
        )


def format_axes(axes: Mapping[str, int]) -> str:
    return ",".join(f"{axis}={size}" for axis, size in axes.items())


def _unanimous(meshes: Iterable[Axes]) -> Axes:
    """The one mesh that all agree on, else empty."""
    different = {axes for axes in meshes if axes}
    return different.pop() if len(different) == 1 else ()


def _leaves(tree: object) -> Iterator[object]:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for child in tree:
            yield from _leaves(child)
    else:
        yield tree


def _axes_of(leaf: object) -> Axes:
    """The axes of a sharding, or of an array with one."""
    shape = getattr(getattr(getattr(leaf, "sharding", leaf), "mesh", None), "shape", None)
    if not isinstance(shape, Mapping):
        return ()
    return tuple((str(axis), size) for axis, size in shape.items() if isinstance(size, int))
