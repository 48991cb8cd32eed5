"""The mesh of a report: where each device is."""

from collections.abc import Mapping
from dataclasses import dataclass

from compare.report.model.codec import Count
from meshes.devices.topology import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of the mesh."""

    id: Count
    coordinates: Mapping[str, Count]
    """Axis -> coordinate, outermost first."""
    place: Place
    """Its chip, and its core of that chip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMesh:
    """The mesh on its torus."""

    name: str
    topology: str
    sides: tuple[Count, ...]
    """Chips along x, y and z of one slice."""
    wraps: tuple[bool, ...]
    """Whether each side closes to a ring."""
    slices: Count
    devices: tuple[Device, ...]
    groups: Mapping[str, tuple[tuple[Count, ...], ...]]
    """Axis -> the groups of device ids over it; axes of more than one device only, outermost first."""
