"""Find the mesh axes of a collective from its groups."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise

from compare.hlo.devices.groups import Groups
from compare.hlo.text.errors import MOST_DEVICES, HloError
from meshes.devices.mesh_spec import list_coordinates, list_groups

SlicePart = frozenset[frozenset[int]]
"""Groups over several slices, cut at slice borders: those of one stage of a collective between slices."""


@dataclass(frozen=True)
class Mesh:
    """Named axes, outermost first; devices are numbered row-major.  No axes: nothing is known of the mesh."""

    sizes: Mapping[str, int]
    num_devices: int

    @classmethod
    def of(cls, axes: Mapping[str, int], *, in_program: int | None, largest_id: int) -> "Mesh":
        """The mesh of a program of `in_program` devices, which is the whole of it or one of its slices.

        Where the text does not say how many devices it is for, the axes do, or else the ids in its groups.
        """
        size = math.prod(axes.values()) if axes else in_program or largest_id + 1
        if size > MOST_DEVICES:
            raise HloError(f"{_spell(axes) or 'the ids'} make {size} devices; {MOST_DEVICES} are the most")
        if not axes:
            return cls({}, size)
        if in_program is not None and size % in_program:
            raise HloError(
                f"the axes {_spell(axes)} make {size} devices; the program is for {in_program}, "
                "and the axes must make that number or, of several slices, a multiple of it"
            )
        return cls(dict(axes), size)

    @cached_property
    def _wide(self) -> tuple[str, ...]:
        """The axes of size 2 or more."""
        return tuple(axis for axis, size in self.sizes.items() if size > 1)

    @cached_property
    def by_groups(self) -> dict[frozenset[frozenset[int]], tuple[str, ...]]:
        """Groups -> the smallest set of axes that has them."""
        axes_by_groups: dict[frozenset[frozenset[int]], tuple[str, ...]] = {}
        for count in range(len(self._wide) + 1):
            for axes in combinations(self._wide, count):
                axes_by_groups.setdefault(frozenset(map(frozenset, self.groups(axes))), axes)
        return axes_by_groups

    @property
    def _coordinates(self) -> Mapping[str, tuple[int, ...]]:
        return coordinates_by_axis(tuple(self.sizes.items()))

    def groups(self, axes: tuple[str, ...]) -> Groups:
        """The device groups along some axes, each in the order of ids."""
        return list_groups(self.sizes, axes)

    def axes_of_groups(self, groups: Groups) -> str:
        """The smallest set of axes with just these groups; `tp:sub` strictly inside one; else `?`."""
        if not self.sizes:
            return "?"
        axes = self.by_groups.get(frozenset(map(frozenset, groups)))
        if axes is not None:
            return ",".join(axes)
        inside = {self._only_axis(group) for group in groups if len(group) > 1}
        if len(inside) == 1 and None not in inside:
            return f"{inside.pop()}:sub"
        return "?"

    def _only_axis(self, group: tuple[int, ...]) -> str | None:
        """The axis that a group lies strictly inside; None without one."""
        if max(group) >= self.num_devices:
            return None
        varying = [axis for axis in self._wide if len({self._coordinates[axis][device] for device in group}) > 1]
        return varying[0] if len(varying) == 1 and len(group) < self.sizes[varying[0]] else None

    def axes_of_pairs(self, pairs: Iterable[tuple[int, ...]]) -> str:
        """The axes along which any pair's coordinates differ."""
        if not self.sizes:
            return "?"
        moving = [pair for pair in pairs if pair[0] != pair[1]]
        if any(max(pair) >= self.num_devices for pair in moving):
            return "?"
        coordinates = self._coordinates
        differ = {
            axis for axis in self._wide for pair in moving if coordinates[axis][pair[0]] != coordinates[axis][pair[1]]
        }
        return ",".join(axis for axis in self._wide if axis in differ)

    def is_ring_step(self, pairs: Groups) -> bool:
        """Whether the pairs are the step +1 or -1 around every group of one axis."""
        moves = frozenset(pairs)
        rings = [self.groups((axis,)) for axis in self._wide] if self.sizes else _cycles(moves)
        return any(moves == frozenset(_steps(groups, step)) for groups in rings for step in (1, -1))


@lru_cache(maxsize=64)
def coordinates_by_axis(sizes: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
    """For each axis the coordinate of device 0, 1, …; `sizes` are those of all axes, outermost first."""
    by_axis = zip(*list_coordinates(dict(sizes)), strict=True)
    return {axis: along for (axis, _), along in zip(sizes, by_axis, strict=True)}


def read_axes(text: str | None) -> dict[str, int]:
    """`data=2,tensor=4` -> sizes by name; empty for no text."""
    axes: dict[str, int] = {}
    for part in text.split(",") if text is not None else ():
        name, _, size = part.partition("=")
        name, size = name.strip(), size.strip()
        if not name or not size.isdecimal() or int(size) < 1 or name in axes:
            raise HloError(f"cannot read the axes {text!r} at {part!r}; write each name once, like data=2,tensor=4")
        axes[name] = int(size)
    return axes


def validate_axes(axes: Mapping[str, int]) -> dict[str, int]:
    """The axes, checked: each size is an integer from 1.  Raises `HloError`."""
    if not isinstance(axes, Mapping):
        raise HloError(f"cannot read the axes {axes!r}; write sizes by name, like {{'data': 2}}, or 'data=2'")
    for name, size in axes.items():
        if not isinstance(name, str) or not name or type(size) is not int or size < 1:
            raise HloError(f"cannot read the axes {dict(axes)!r} at {name!r}; write sizes by name, like {{'data': 2}}")
    return dict(axes)


def _steps(groups: Groups, step: int) -> Iterable[tuple[int, ...]]:
    return ((device, group[(at + step) % len(group)]) for group in groups for at, device in enumerate(group))


def _cycles(moves: frozenset[tuple[int, ...]]) -> list[Groups]:
    """Without a mesh: the cycles of the pairs, if equally long and evenly spaced, like groups of an axis."""
    target = {pair[0]: pair[1] for pair in moves}
    if len(target) != len(moves) or set(target) != set(target.values()):
        return []
    left, cycles = set(target), []
    while left:
        cycle, at = [], min(left)
        while at in left:
            left.remove(at)
            cycle.append(at)
            at = target[at]
        cycles.append(tuple(sorted(cycle)))
    spacing = {b - a for cycle in cycles for a, b in pairwise(cycle)}
    return [tuple(cycles)] if len({len(cycle) for cycle in cycles}) == 1 and len(spacing) == 1 else []


def _spell(axes: Mapping[str, int]) -> str:
    return ",".join(f"{axis}={size}" for axis, size in axes.items())


def find_slice_parts(mesh: Mesh, slice_of: Sequence[int]) -> dict[SlicePart, str]:
    """For axes over several slices: the groups of each hierarchical step (within slices, between slices) -> their axes.

    A group over several slices talks in steps: the devices of each slice among themselves, and those of the same place
    in each slice with each other.  Of several sets of axes
    with the same groups, the smallest; groups that are those of some axes themselves are left out.
    """
    parts: dict[SlicePart, str] = {}
    for groups, axes in mesh.by_groups.items():
        for part in _cut_at_slices(groups, slice_of):
            if part not in mesh.by_groups:
                parts.setdefault(part, ",".join(axes))
    return parts


def axes_of_part(groups: Groups, known: dict[SlicePart, str]) -> str:
    """The axes that these groups are a part of; empty without any."""
    return known.get(frozenset(map(frozenset, groups)), "")


def _cut_at_slices(groups: Iterable[frozenset[int]], slice_of: Sequence[int]) -> tuple[SlicePart, SlicePart]:
    """The part within slices, and the part between them."""
    within: set[frozenset[int]] = set()
    between: set[frozenset[int]] = set()
    for group in groups:
        by_slice: dict[int, list[int]] = {}
        for device in sorted(group):
            by_slice.setdefault(slice_of[device], []).append(device)
        within.update(map(frozenset, by_slice.values()))
        between.update(map(frozenset, zip(*by_slice.values(), strict=False)))
    return frozenset(within), frozenset(between)
