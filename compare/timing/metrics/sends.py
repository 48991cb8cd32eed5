"""What each device sends in a collective, from the rows of a report; bytes as in docs/definitions.md, section 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from compare.program.groups import Groups
from compare.program.payload import round_half_up, sent_bytes
from compare.timing.errors import TimingError
from compare.timing.intervals import Times

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sends:
    """One collective of a program on all devices of a mesh."""

    name: str
    kind: str
    axes: str
    groups: Groups
    """Ids of devices of the whole mesh, of a permute pairs."""
    payload_bytes: int
    factors: tuple[Fraction, ...]
    """Of each device, the bytes that it sends by byte of payload."""
    executions: tuple[int, ...] | None
    """Of each device in one step; `None` where the report does not tell them."""

    @property
    def bus_factor(self) -> Fraction:
        """NCCL-tests' bus bandwidth by algorithm bandwidth, of its largest group."""
        if self.kind in ("collective-permute", "collective-broadcast"):
            return Fraction(1)
        return max(self.factors, default=Fraction(0))

    def sent(self) -> Times:
        """The same factors, as numbers for arrays."""
        return np.array([float(factor) for factor in self.factors])


def sends(rows: Sequence[Row], mesh: Mapping[str, Any]) -> dict[str, Sends]:
    """Collective -> what it sends.  `mesh` is a report's picture of the mesh."""
    num_devices = len(mesh["devices"])
    return {row["name"]: _sends(row, num_devices, num_devices // mesh["slices"]) for row in rows}


def _sends(row: Row, num_devices: int, in_slice: int) -> Sends:
    groups = _everywhere(tuple(map(tuple, row["groups"])), num_devices, in_slice)
    factors = _factors(row["kind"], groups, num_devices)
    return Sends(
        name=row["name"], kind=row["kind"], axes=row["axes"], groups=groups, payload_bytes=row["payload_bytes"],
        factors=factors, executions=_executions(row, factors),
    )  # fmt: skip


def _everywhere(groups: Groups, num_devices: int, in_slice: int) -> Groups:
    """Groups of one slice's program stand for a group in every slice."""
    largest = max((device for group in groups for device in group), default=0)
    if largest >= num_devices:
        raise TimingError(f"a collective names device {largest}, and the mesh has {num_devices} devices")
    if largest >= in_slice:
        return groups
    starts = range(0, num_devices, in_slice)
    return tuple(tuple(start + place for place in group) for start in starts for group in groups)


@lru_cache(maxsize=256)
def _factors(kind: str, groups: Groups, num_devices: int) -> tuple[Fraction, ...]:
    return sent_bytes(kind, groups, 1, num_devices)


def _executions(row: Row, factors: Sequence[Fraction]) -> tuple[int, ...] | None:
    """Of each device: as the row says, else the same for all, if the row's bytes of a step agree."""
    if row.get("device_executions"):
        return tuple(row["device_executions"])
    if row["executions"] is None:
        return None
    step = row["executions"] * row["payload_bytes"] * sum(factors, Fraction(0)) / len(factors)
    same = round_half_up(step) == row["step_wire_bytes"]
    return (row["executions"],) * len(factors) if same else None
