"""The bytes that each device sends in a collective, from report rows; as in docs/definitions.md, section 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.hlo.emission.payload import round_half_up, sent_bytes
from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import CollectiveRow
from compare.timeline.arrays import Times
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBytes:
    """One collective of a program on all devices of a mesh."""

    name: str
    kind: str
    axes: str
    groups: Groups
    """Device ids in the full mesh; pairs for a permute."""
    payload_bytes: int
    factors: tuple[Fraction, ...]
    """Per device, bytes sent per byte of payload."""
    executions: tuple[int, ...] | None
    """Per device, in one step; `None` where unknown."""

    @property
    def bus_factor(self) -> Fraction:
        """NCCL-tests' ratio of bus bandwidth to algorithm bandwidth, for its largest group."""
        if self.kind in ("collective-permute", "collective-broadcast"):
            return Fraction(1)
        return max(self.factors, default=Fraction(0))

    def sent(self) -> Times:
        """`factors` as an array."""
        return np.array([float(factor) for factor in self.factors])


def bytes_sent_by(rows: Sequence[CollectiveRow], mesh: DeviceMesh) -> dict[str, SentBytes]:
    """Collective -> its sent bytes.  `mesh` is a report's."""
    slices: dict[int, list[int]] = {}
    for device in mesh.devices:
        slices.setdefault(device.place.slice_index, []).append(device.id)
    return {row.name: _sends(row, len(mesh.devices), list(slices.values())) for row in rows}


def _sends(row: CollectiveRow, num_devices: int, slices: Sequence[Sequence[int]]) -> SentBytes:
    groups = _everywhere(row, num_devices, slices)
    factors = _factors(row.kind, groups, num_devices)
    return SentBytes(
        name=row.name,
        kind=row.kind,
        axes=row.axes,
        groups=groups,
        payload_bytes=row.payload_bytes,
        factors=factors,
        executions=_executions(row, factors),
    )


def _everywhere(row: CollectiveRow, num_devices: int, slices: Sequence[Sequence[int]]) -> Groups:
    """The groups in the full mesh: a group of indices within a slice becomes one group in every slice."""
    groups: Groups = row.groups
    largest = max((device for group in groups for device in group), default=0)
    if largest >= num_devices:
        raise TimingError(f"a collective names device {largest}, and the mesh has {num_devices} devices")
    if row.network == "dcn" or len(slices) == 1 or largest >= len(slices[0]):
        return groups
    return tuple(tuple(devices[index] for index in group) for devices in slices for group in groups)


@lru_cache(maxsize=256)
def _factors(kind: str, groups: Groups, num_devices: int) -> tuple[Fraction, ...]:
    return sent_bytes(kind, groups, 1, num_devices)


def _executions(row: CollectiveRow, factors: Sequence[Fraction]) -> tuple[int, ...] | None:
    """Per device: from the row, else the same for all, if that agrees with the row's bytes per step."""
    if row.device_executions:
        return row.device_executions
    if row.executions is None:
        return None
    step = row.executions * row.payload_bytes * sum(factors, Fraction(0)) / len(factors)
    same = round_half_up(step) == row.step_wire_bytes
    return (row.executions,) * len(factors) if same else None
