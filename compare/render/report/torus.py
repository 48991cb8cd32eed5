"""The mesh on the torus, as coordinates for a template: chips, links, and the groups of each axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compare.report.model.mesh import Device, DeviceMesh

PITCH, CHIP, MARGIN = 60, 40, 26
"""SVG units: distance of chips, side of a chip, margin around a plane."""

GOLDEN = 137.508
"""Degrees of hue between groups (the golden angle), so that neighbours differ."""

_BEND = 52
"""Distance of an arc's control point from the straight line."""

_ACROSS = 4
"""Planes per row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One device: a chip, or a core's part of its box."""

    x: float
    y: float
    width: float
    device: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A link between neighbours, or the stub of a wraparound link."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group of an axis: its hue, and the line through its members as two SVG paths."""

    hue: float
    steps: str
    """Segments between adjacent chips."""
    arcs: str
    """Segments between members that are not adjacent in the drawing."""
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Torus:
    """The drawing; `axes` are its overlays, one shown at a time."""

    width: float
    height: float
    chips: tuple[Chip, ...]
    links: tuple[Segment, ...]
    wraps: tuple[Segment, ...]
    planes: tuple[tuple[float, float, str], ...]
    """x, y and name of each plane, where there are several."""
    axes: Mapping[str, tuple[Group, ...]]
    hues: Mapping[str, tuple[float, ...]]
    """Axis -> hue of each device."""


def lay_out_torus(mesh: DeviceMesh) -> Torus:
    """Lay out a report's mesh: x downwards, y across, one plane per z and slice."""
    places = [device.place for device in mesh.devices]
    sides, cores = list(mesh.sides), max((place.core for place in places), default=0) + 1
    planes = _planes(mesh.slices, sides)
    chips = [_chip(device, planes, cores) for device in mesh.devices]
    middle = [(chip.x + chip.width / 2, chip.y + CHIP / 2) for chip in chips]
    groups = {
        axis: tuple(_group(index, rows, middle) for index, rows in enumerate(lists))
        for axis, lists in mesh.groups.items()
    }
    several = len(planes) > 1
    left, top = max(x for x, _, _ in planes.values()), max(y for _, y, _ in planes.values())
    return Torus(
        width=left + _wide(sides),
        height=top + _tall(sides, several),
        chips=tuple(chips),
        links=tuple(line for plane in planes.values() for line in _links(plane, sides)),
        wraps=tuple(line for plane in planes.values() for line in _wraps(plane, sides, mesh.wraps)),
        planes=tuple(planes.values()) if several else (),
        axes=groups,
        hues={axis: _hues(rows, len(chips)) for axis, rows in groups.items()},
    )


def _planes(slices: int, sides: Sequence[int]) -> dict[tuple[int, int], tuple[float, float, str]]:
    """(slice, z) -> upper left corner and name of its plane."""
    planes = {}
    several = slices * sides[2] > 1
    for slice_index in range(slices):
        for z in range(sides[2]):
            index = slice_index * sides[2] + z
            name = ", ".join([f"slice {slice_index}"] * (slices > 1) + [f"z = {z}"] * (sides[2] > 1))
            x, y = index % _ACROSS * _wide(sides), index // _ACROSS * _tall(sides, several)
            planes[slice_index, z] = (float(x), float(y) + (MARGIN if several else 0), name)
    return planes


def _wide(sides: Sequence[int]) -> float:
    return 2 * MARGIN + (sides[1] - 1) * PITCH + CHIP


def _tall(sides: Sequence[int], several: bool) -> float:
    return (3 if several else 2) * MARGIN + (sides[0] - 1) * PITCH + CHIP


def _corner(plane: tuple[float, float, str], x: int, y: int) -> tuple[float, float]:
    return plane[0] + MARGIN + y * PITCH, plane[1] + MARGIN + x * PITCH


def _chip(device: Device, planes: Mapping[tuple[int, int], tuple[float, float, str]], cores: int) -> Chip:
    place = device.place
    left, top = _corner(planes[place.slice_index, place.z], place.x, place.y)
    width = CHIP / cores
    on_mesh = " ".join(f"{axis}{coordinate}" for axis, coordinate in device.coordinates.items())
    where = f"x {place.x}, y {place.y}, z {place.z}"
    return Chip(
        x=left + place.core * width,
        y=top,
        width=width,
        device=device.id,
        title=f"device {device.id}: {on_mesh}; chip at {where}",
    )


def _links(plane: tuple[float, float, str], sides: Sequence[int]) -> list[Segment]:
    lines = []
    for x in range(sides[0]):
        for y in range(sides[1]):
            left, top = _corner(plane, x, y)
            if y + 1 < sides[1]:
                lines.append(Segment(x1=left + CHIP, y1=top + CHIP / 2, x2=left + PITCH, y2=top + CHIP / 2))
            if x + 1 < sides[0]:
                lines.append(Segment(x1=left + CHIP / 2, y1=top + CHIP, x2=left + CHIP / 2, y2=top + PITCH))
    return lines


def _wraps(plane: tuple[float, float, str], sides: Sequence[int], wraps: Sequence[bool]) -> list[Segment]:
    """Stubs of the wraparound links."""
    reach = MARGIN * 0.6
    lines = []
    if wraps[0]:
        for y in range(sides[1]):
            left, top = _corner(plane, 0, y)
            low = top + (sides[0] - 1) * PITCH + CHIP
            lines += [
                Segment(x1=left + CHIP / 2, y1=top - reach, x2=left + CHIP / 2, y2=top),
                Segment(x1=left + CHIP / 2, y1=low, x2=left + CHIP / 2, y2=low + reach),
            ]
    if len(wraps) > 1 and wraps[1]:
        for x in range(sides[0]):
            left, top = _corner(plane, x, 0)
            right = left + (sides[1] - 1) * PITCH + CHIP
            lines += [
                Segment(x1=left - reach, y1=top + CHIP / 2, x2=left, y2=top + CHIP / 2),
                Segment(x1=right, y1=top + CHIP / 2, x2=right + reach, y2=top + CHIP / 2),
            ]
    return lines


def _group(index: int, devices: Sequence[int], middle: Sequence[tuple[float, float]]) -> Group:
    steps, arcs = [], []
    for (x1, y1), (x2, y2) in pairwise(middle[device] for device in devices):
        if abs(x1 - x2) + abs(y1 - y2) <= PITCH:
            steps.append(f"M{x1:g} {y1:g}L{x2:g} {y2:g}")
        else:
            # An arc around the chips between them: over a row, beside a column.
            bend = (x1 + x2) / 2 + (_BEND if y1 != y2 else 0), (y1 + y2) / 2 - (_BEND if x1 != x2 else 0)
            arcs.append(f"M{x1:g} {y1:g}Q{bend[0]:g} {bend[1]:g} {x2:g} {y2:g}")
    hue = round(index * GOLDEN % 360, 1)
    return Group(hue=hue, steps="".join(steps), arcs="".join(arcs), devices=tuple(devices))


def _hues(groups: Sequence[Group], num_devices: int) -> tuple[float, ...]:
    hues = [0.0] * num_devices
    for group in groups:
        for device in group.devices:
            hues[device] = group.hue
    return tuple(hues)
