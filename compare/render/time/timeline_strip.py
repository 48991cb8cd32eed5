"""One step of a timeline as plain numbers, small enough for a page: when each device computes and communicates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.render.time.timeline_view import NO_SHARE, ProgramTimeline, middle_step, shares_by_name
from compare.report.model.codec import OPTIONAL, JsonObject, copy_fields, encode
from compare.report.model.mesh import DeviceMesh
from compare.timeline.intervals import Union
from compare.timeline.timeline import COMMUNICATION, COMPUTE, COPY, UNKNOWN

_UNITS = 1_000_000
"""Time resolution: a step has this many units."""

_SEEN = 20_000
"""Blocks of compute with a gap below 1/20000 of the step are merged."""

_FEW, _MOST = 4, 8
"""Up to _FEW devices of a program are all shown; at most _MOST are."""

NO_STAGES: Mapping[int, int] = MappingProxyType({})

_COLLECTIVE = ("collective", "name", "kind", "axes", "scope", "payload_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class StripCollective:
    """The description of one collective in a strip."""

    name: str
    kind: str
    axes: str
    scope: str
    payload_bytes: int | None
    verdict: str
    parts: tuple[float, ...]
    """By verdict, as in `Share`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCommunications:
    """The communications of a device, by start; starts are differences from the previous one."""

    of: list[int]
    """Indices into the strip's `collectives`."""
    start: list[int]
    length: list[int]
    exposed: list[int]
    """Exposed part of each length."""
    wait: list[int] | None
    """Wait for other devices in each length; `None` where any is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One device, or several identical ones; `compute` is start, length, start, length, … of its blocks.

    copies: the same of its waits for local copies; absent where there are none.
    """

    name: str
    compute: list[int]
    talk: LaneCommunications
    copies: list[int] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One step of one program; all times of its lanes are in `unit_ns`, from the start of the step."""

    phase: str
    arm: str
    title: str
    cell: str
    default: bool
    source: str
    on_cpu: bool
    label: str
    unit_ns: float
    step_ns: float
    collectives: tuple[StripCollective, ...]
    lanes: tuple[Lane, ...]

    def to_json(self) -> JsonObject:
        """The form that the page's script reads: a collective is a list of its fields."""
        return encode(self) | {"collectives": [list(encode(row).values()) for row in self.collectives]}


def strip(program: ProgramTimeline, *, stage_of: Mapping[int, int] = NO_STAGES) -> Strip:
    """The step of median length; of many devices, the first of each pipeline stage.

    stage_of: device -> stage.
    """
    timeline = program.timeline
    step, begin, end = middle_step(timeline)
    unit = max(1.0, (end - begin) / _UNITS)
    events = timeline.events[timeline.events["step"].eq(step)] if step is not None else timeline.events
    comms = events[events["role"].eq(COMMUNICATION)]
    indices, collectives = _collectives(comms, program)
    lanes = []
    for device in _shown_devices(events, stage_of):
        device_comms = comms[comms["device"].eq(device)]
        work, copies = (events[events["device"].eq(device) & events["role"].eq(role)] for role in (COMPUTE, COPY))
        lanes.append(
            Lane(
                name=_name(device, timeline.stands_for.get(device, (device,)), stage_of),
                compute=_blocks(work, begin, unit, least=(end - begin) / _SEEN),
                copies=_blocks(copies, begin, unit, least=(end - begin) / _SEEN) or None,
                talk=_communications(device_comms, indices[comms["device"].eq(device).to_numpy()], begin, unit),
            )
        )
    return copy_fields(
        program,
        Strip,
        source=timeline.source,
        on_cpu=program.platform == "cpu",
        unit_ns=unit,
        step_ns=end - begin,
        collectives=collectives,
        lanes=tuple(lanes),
    )


def stages(mesh: DeviceMesh) -> dict[int, int]:
    """Device -> pipeline stage, of a report's mesh."""
    return {device.id: device.coordinates.get("pp", 0) for device in mesh.devices}


def _name(device: int, members: Sequence[int], stage_of: Mapping[int, int]) -> str:
    """`stage 0, device 1`; `devices 0–7` where one represents all of them."""
    if device == UNKNOWN:
        return "unknown device"
    stages_of_devices = {stage_of.get(member) for member in members}
    stage = (
        f"stage {stage_of[device]}, "
        if len(stages_of_devices) == 1 < len(set(stage_of.values())) and device in stage_of
        else ""
    )
    if len(members) == 1:
        return f"{stage}device {device}"
    first, last = min(members), max(members)
    numbers = f"{first}–{last}" if last - first + 1 == len(members) else f"{first}, … {last} ({len(members)})"
    return f"{stage}devices {numbers}"


def _shown_devices(events: pd.DataFrame, stage_of: Mapping[int, int]) -> list[int]:
    """All devices with events if they are few; else the first of each stage, at most `_MOST`."""
    present = sorted(set(events["device"].unique().tolist()))
    known = [device for device in present if device != UNKNOWN] or present
    if len(known) > _FEW:
        firsts = {stage_of.get(device, 0): device for device in reversed(known)}
        known = sorted(firsts.values())
    if len(known) > _MOST:
        known = [known[index * (len(known) - 1) // (_MOST - 1)] for index in range(_MOST)]
    return known


def _collectives(
    comms: pd.DataFrame, program: ProgramTimeline
) -> tuple[NDArray[np.int64], tuple[StripCollective, ...]]:
    """(for each communication its index into the list, the list of distinct collectives)."""
    shares = shares_by_name(program.shares)
    table = comms[list(_COLLECTIVE)].astype({name: object for name in _COLLECTIVE[:-1]})
    indices = table.groupby(list(_COLLECTIVE), dropna=False, sort=False).ngroup().to_numpy().astype(np.int64)
    collectives = []
    for collective, name, kind, axes, scope, payload in table.drop_duplicates().to_numpy().tolist():
        share = shares.get(collective, NO_SHARE)
        known = None if math.isnan(payload) else round(payload)
        collectives.append(
            StripCollective(
                name=collective or name,
                kind=kind,
                axes=axes,
                scope=scope,
                payload_bytes=known,
                verdict=share.verdict,
                parts=tuple(round(part, 4) for part in share.parts),
            )
        )
    return indices, tuple(collectives)


def _blocks(work: pd.DataFrame, begin: float, unit: float, *, least: float) -> list[int]:
    """Start, length, start, … of such events, in units; gaps shorter than `least` ns are closed."""
    starts = work["start_ns"].to_numpy(np.float64)
    busy = Union.of(starts, starts + work["duration_ns"].to_numpy(np.float64))
    if not busy.starts.size:
        return []
    gaps = np.flatnonzero(busy.starts[1:] - busy.ends[:-1] >= least)
    starts = _to_units(busy.starts[np.concatenate(([0], gaps + 1))] - begin, unit)
    ends = _to_units(busy.ends[np.concatenate((gaps, [-1]))] - begin, unit)
    blocks: list[int] = np.column_stack((np.diff(starts, prepend=0), ends - starts)).ravel().tolist()
    return blocks


def _communications(comms: pd.DataFrame, indices: NDArray[np.int64], begin: float, unit: float) -> LaneCommunications:
    order = np.argsort(comms["start_ns"].to_numpy(), kind="stable")
    comms, waits = comms.iloc[order], comms["wait_ns"].to_numpy(np.float64)[order]
    starts = comms["start_ns"].to_numpy(np.float64) - begin
    first, last = _to_units(starts, unit), _to_units(starts + comms["duration_ns"].to_numpy(np.float64), unit)
    hidden = np.minimum(_to_units(comms["hidden_ns"].to_numpy(np.float64), unit), last - first)
    exposed = np.where(comms["exposed_ns"].to_numpy(np.float64) > 0, last - first - hidden, 0)
    return LaneCommunications(
        of=indices[order].tolist(),
        start=np.diff(first, prepend=0).tolist(),
        length=(last - first).tolist(),
        exposed=exposed.tolist(),
        wait=None if np.isnan(waits).any() else _to_units(waits, unit).tolist(),
    )


def _to_units(times: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
    return np.rint(times / unit).astype(np.int64)
