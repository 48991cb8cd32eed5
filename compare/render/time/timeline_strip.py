"""One step of a timeline as plain numbers, small enough to stand in a page: when each device computes and talks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.render.time.timeline_view import NO_SHARE, TimedProgram, middle_step, shares_by_name
from compare.report.model.codec import JsonObject, encode
from compare.report.model.mesh import DeviceMesh
from compare.timing.intervals import Union
from compare.timing.timeline import COMMUNICATION, COMPUTE, UNKNOWN

_UNITS = 1_000_000
"""Of a step: times are whole numbers of that part of it."""

_SEEN = 20_000
"""Of a step: two blocks of compute that a shorter time lies between are drawn as one."""

_FEW, _MOST = 4, 8
"""Devices of one program that are all shown; that are shown at the most."""

NO_STAGES: Mapping[int, int] = MappingProxyType({})

_COLLECTIVE = ("collective", "name", "kind", "axes", "scope", "payload_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class StripCollective:
    """What a strip says of one collective."""

    name: str
    kind: str
    axes: str
    scope: str
    payload_bytes: int | None
    verdict: str
    parts: tuple[float, ...]
    """By verdict, as those of `Share`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The communications of a device by their start, which is told from the one before."""

    of: list[int]
    """Places in the strip's `collectives`."""
    start: list[int]
    length: list[int]
    exposed: list[int]
    """Of the length, what is exposed."""
    wait: list[int] | None
    """Of the length, what is waited for others; None where any is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One device, or several that do the same; `compute` is start, length, start, length, … of its blocks."""

    name: str
    compute: list[int]
    talk: Talk


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
        """As the page's script reads it: a collective is a list of its fields."""
        return encode(self) | {"collectives": [list(encode(row).values()) for row in self.collectives]}


def strip(timed: TimedProgram, *, stage_of: Mapping[int, int] = NO_STAGES) -> Strip:
    """The step of the middle length; of many devices, the first of each pipeline stage.

    stage_of: device -> stage.
    """
    found = timed.timeline
    number, begin, end = middle_step(found)
    unit = max(1.0, (end - begin) / _UNITS)
    events = found.events[found.events["step"].eq(number)] if number is not None else found.events
    talks = events[events["role"].eq(COMMUNICATION)]
    places, collectives = _collectives(talks, timed)
    lanes = []
    for device in _shown(events, stage_of):
        own = talks[talks["device"].eq(device)]
        work = events[events["device"].eq(device) & events["role"].eq(COMPUTE)]
        lanes.append(Lane(
            name=_name(device, found.stands_for.get(device, (device,)), stage_of),
            compute=_blocks(work, begin, unit, least=(end - begin) / _SEEN),
            talk=_talk(own, places[talks["device"].eq(device).to_numpy()], begin, unit),
        ))  # fmt: skip
    return Strip(
        phase=timed.phase, arm=timed.arm, title=timed.title, cell=timed.cell, default=timed.default,
        source=found.source, on_cpu=timed.platform == "cpu", label=timed.label, unit_ns=unit,
        step_ns=end - begin, collectives=collectives, lanes=tuple(lanes),
    )  # fmt: skip


def stages(mesh: DeviceMesh) -> dict[int, int]:
    """Device -> pipeline stage, of a report's mesh."""
    return {device.id: device.coordinates.get("pp", 0) for device in mesh.devices}


def _name(device: int, alike: Sequence[int], stage_of: Mapping[int, int]) -> str:
    """`stage 0, device 1`; `devices 0–7` where one stands for all of them."""
    if device == UNKNOWN:
        return "unknown device"
    own = {stage_of.get(one) for one in alike}
    stage = f"stage {stage_of[device]}, " if len(own) == 1 < len(set(stage_of.values())) and device in stage_of else ""
    if len(alike) == 1:
        return f"{stage}device {device}"
    first, last = min(alike), max(alike)
    told = f"{first}–{last}" if last - first + 1 == len(alike) else f"{first}, … {last} ({len(alike)})"
    return f"{stage}devices {told}"


def _shown(events: pd.DataFrame, stage_of: Mapping[int, int]) -> list[int]:
    """All devices that have events, where they are few; else the first of each stage, and no more than `_MOST`."""
    there = sorted(set(events["device"].unique().tolist()))
    known = [device for device in there if device != UNKNOWN] or there
    if len(known) > _FEW:
        firsts = {stage_of.get(device, 0): device for device in reversed(known)}
        known = sorted(firsts.values())
    if len(known) > _MOST:
        known = [known[at * (len(known) - 1) // (_MOST - 1)] for at in range(_MOST)]
    return known


def _collectives(talks: pd.DataFrame, timed: TimedProgram) -> tuple[NDArray[np.int64], tuple[StripCollective, ...]]:
    """For each communication its place in the list of what is told of them."""
    shares = shares_by_name(timed.shares)
    table = talks[list(_COLLECTIVE)].astype({name: object for name in _COLLECTIVE[:-1]})
    places = table.groupby(list(_COLLECTIVE), dropna=False, sort=False).ngroup().to_numpy().astype(np.int64)
    found = []
    for collective, name, kind, axes, scope, payload in table.drop_duplicates().to_numpy().tolist():
        share = shares.get(collective, NO_SHARE)
        known = None if math.isnan(payload) else round(payload)
        found.append(StripCollective(
            name=collective or name, kind=kind, axes=axes, scope=scope, payload_bytes=known, verdict=share.verdict,
            parts=tuple(round(part, 4) for part in share.parts),
        ))  # fmt: skip
    return places, tuple(found)


def _blocks(work: pd.DataFrame, begin: float, unit: float, *, least: float) -> list[int]:
    """Start, length, start, … of the time in which it computes; gaps shorter than `least` are closed."""
    starts = work["start_ns"].to_numpy(np.float64)
    busy = Union.of(starts, starts + work["duration_ns"].to_numpy(np.float64))
    if not busy.starts.size:
        return []
    apart = np.flatnonzero(busy.starts[1:] - busy.ends[:-1] >= least)
    starts = _whole(busy.starts[np.concatenate(([0], apart + 1))] - begin, unit)
    ends = _whole(busy.ends[np.concatenate((apart, [-1]))] - begin, unit)
    found: list[int] = np.column_stack((np.diff(starts, prepend=0), ends - starts)).ravel().tolist()
    return found


def _talk(own: pd.DataFrame, places: NDArray[np.int64], begin: float, unit: float) -> Talk:
    order = np.argsort(own["start_ns"].to_numpy(), kind="stable")
    own, waits = own.iloc[order], own["wait_ns"].to_numpy(np.float64)[order]
    starts = own["start_ns"].to_numpy(np.float64) - begin
    first, last = _whole(starts, unit), _whole(starts + own["duration_ns"].to_numpy(np.float64), unit)
    hidden = np.minimum(_whole(own["hidden_ns"].to_numpy(np.float64), unit), last - first)
    exposed = np.where(own["exposed_ns"].to_numpy(np.float64) > 0, last - first - hidden, 0)
    return Talk(
        of=places[order].tolist(),
        start=np.diff(first, prepend=0).tolist(),
        length=(last - first).tolist(),
        exposed=exposed.tolist(),
        wait=None if np.isnan(waits).any() else _whole(waits, unit).tolist(),
    )


def _whole(times: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
    return np.rint(times / unit).astype(np.int64)
