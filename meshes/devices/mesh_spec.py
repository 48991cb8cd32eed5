"""The device grid: its axes, its numbering, its groups."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Self

from meshes.process.errors import MeshError
from meshes.process.one_line import one_line, quote

AXES = ("dp", "pp", "cp", "ep", "tp")
"""Outermost first: the axis that talks most sits on neighbouring chips."""

_LONGEST = 200
"""Characters of a mesh's name that are read; of no mesh more are needed."""

MOST_DEVICES = 2**17
"""Of a mesh: ten times the largest pod."""

_PAIR = re.compile(r"([a-z]+)([1-9]\d*)")


@dataclass(frozen=True)
class MeshSpec:
    """The sizes of the device grid.  Devices are numbered row-major over `AXES`."""

    dp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    tp: int = 1

    def __post_init__(self) -> None:
        for axis, size in self.axes.items():
            if type(size) is not int or size < 1:
                raise MeshError(f"axis {axis} has size {quote(size)}; a size is a whole number from 1")
            if size > MOST_DEVICES:
                raise MeshError(f"axis {axis} has size {quote(size)}; a mesh has at most {MOST_DEVICES:,} devices")
        if self.num_devices > MOST_DEVICES:
            raise MeshError(f"mesh {self.name} has {self.num_devices:,} devices; there are at most {MOST_DEVICES:,}")

    @classmethod
    def parse(cls, name: str) -> Self:
        """`"tp4pp2"` -> `MeshSpec(pp=2, tp=4)`.  Order in the name does not matter."""
        pairs = _PAIR.findall(name[:_LONGEST])
        if not pairs or "".join(axis + size for axis, size in pairs) != name:
            raise MeshError(f"cannot read mesh {quote(name)}; write axis+size pairs, like 'tp4pp2'")
        return cls.of([(axis, int(size[:10])) for axis, size in pairs], read=name)

    @classmethod
    def of(cls, pairs: list[tuple[str, int]], *, read: str) -> Self:
        """The mesh of these axis and size pairs; `read` is how the user wrote it."""
        names = [axis for axis, _ in pairs]
        if unknown := sorted(set(names) - set(AXES)):
            raise MeshError(
                f"mesh {quote(read)} names {one_line(', '.join(unknown), most=200)}; the axes are {', '.join(AXES)}"
            )
        if len(names) != len(set(names)):
            raise MeshError(f"mesh {quote(read)} names an axis twice; write each axis once, like 'tp4pp2'")
        return cls(**dict(pairs))

    @property
    def axes(self) -> dict[str, int]:
        """Axis -> size, outermost first, the axes of size 1 too."""
        return {axis: getattr(self, axis) for axis in AXES}

    @property
    def split_axes(self) -> dict[str, int]:
        """Axis -> size, outermost first, of the axes that split anything."""
        return {axis: size for axis, size in self.axes.items() if size > 1}

    @property
    def name(self) -> str:
        """One spelling for each mesh, outermost axis first: `pp2tp4`; `tp1` for a single device."""
        return "".join(f"{axis}{size}" for axis, size in self.split_axes.items()) or "tp1"

    @property
    def num_devices(self) -> int:
        return prod(self.axes.values())

    @cached_property
    def coordinates(self) -> tuple[Mapping[str, int], ...]:
        """The place of device 0, 1, … on each axis."""
        return tuple(dict(zip(AXES, place, strict=True)) for place in list_coordinates(self.axes))

    def groups(self, *axes: str) -> tuple[tuple[int, ...], ...]:
        """The devices that differ only along `axes`, in order of id; `groups("tp")` are the tp groups."""
        return list_groups(self.axes, axes)


def list_coordinates(sizes: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """The coordinates of device 0, 1, …: one on each axis of `sizes`."""
    return product(*(range(size) for size in sizes.values()))


def list_groups(sizes: Mapping[str, int], axes: Collection[str]) -> tuple[tuple[int, ...], ...]:
    """The devices whose coordinates differ along `axes` only, each group in the order of ids."""
    fixed = [number for number, axis in enumerate(sizes) if axis not in axes]
    groups: dict[tuple[int, ...], list[int]] = {}
    for device, coordinates in enumerate(list_coordinates(sizes)):
        groups.setdefault(tuple(coordinates[number] for number in fixed), []).append(device)
    return tuple(map(tuple, groups.values()))
