"""A timeline laid out for counting: a lane for each device, with its steps, its communications and its compute."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timing.arrays import Ints, Mask, Times
from compare.timing.errors import TimingError
from compare.timing.intervals import Union
from compare.timing.timeline import COMMUNICATION, COMPUTE, UNKNOWN, Timeline, steps_by_device


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTrack:
    """One device that the timeline shows."""

    device: int
    stands_for: tuple[int, ...]
    """The devices that do the same, itself among them."""
    steps: NDArray[np.int32]
    begins: Times
    ends: Times
    """Of each step, in order of time."""
    rows: "slice[int, int, int]"
    """Its rows in `DeviceTracks.comms`."""
    starts: Times
    stops: Times
    waits: Times
    """Of its communications, by start; NaN where the waiting is not shown."""
    at: Ints
    """The step in which each of them starts, by place in `steps`; -1 outside all."""
    busy: Union
    """When it computes."""
    known: Mask
    """Of each step, whether its times are: not where it shows no event, and there are some whose device is unknown."""

    @property
    def weight(self) -> int:
        """How many devices it stands for."""
        return len(self.stands_for)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTracks:
    """All devices; `has_devices` is whether events are known by device at all."""

    timeline: Timeline
    comms: pd.DataFrame
    """The communications, by device and start."""
    devices: tuple[DeviceTrack, ...]
    has_devices: bool
    """If not, there is one lane, of all devices together: it has volumes, and no times."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, timeline: Timeline) -> "DeviceTracks":
        """Raises `TimingError` where there are no steps."""
        if not timeline.steps["duration_ns"].gt(0).any():
            raise TimingError("the timeline has no step that lasts; a reader gives at least one, the whole span")
        events = timeline.events
        talking, computing = (events["role"].eq(role).to_numpy() for role in (COMMUNICATION, COMPUTE))
        comms = events[talking].reset_index(drop=True)
        devices = events["device"].to_numpy()
        summed = devices[talking | computing]
        has_devices = bool((summed != UNKNOWN).any()) or not summed.size
        marks = steps_by_device(timeline.steps[timeline.steps["duration_ns"] > 0])
        anybody = marks.get(UNKNOWN, next(iter(marks.values())))
        shown = {UNKNOWN}
        if has_devices:
            shown = {*marks, *(np.unique(summed).tolist() if UNKNOWN in marks else ())} - {UNKNOWN}
        computes = events[computing]
        lost = {step for rows in (comms, computes) for step in rows.loc[rows["device"].eq(UNKNOWN), "step"].unique()}
        tracks = tuple(
            _track(device, timeline, comms, computes, marks.get(device, anybody), lost if has_devices else set())
            for device in sorted(shown)
        )
        notes = (*_notes(timeline, summed, tracks, has_devices), *_waiting(comms))
        return cls(timeline=timeline, comms=comms, devices=tracks, has_devices=has_devices, notes=notes)

    def keys(self, by: Sequence[str]) -> tuple[list[tuple[str, ...]], Ints]:
        """The distinct values of some columns, sorted, and each communication's place among them."""
        if not by:
            return [()], np.zeros(len(self.comms), dtype=np.int64)
        columns = [pd.Categorical(self.comms[column]) for column in by]
        joined = np.zeros(len(self.comms), dtype=np.int64)
        for column in columns:
            joined = joined * len(column.categories) + column.codes
        _, first, codes = np.unique(joined, return_index=True, return_inverse=True)
        names = [tuple(str(column[place]) for column in columns) for place in first]
        order = sorted(range(len(names)), key=names.__getitem__)
        return [names[place] for place in order], np.argsort(order)[codes]

    @property
    def device_steps(self) -> int:
        """Devices times steps: what sums of volumes are divided by."""
        return sum(track.weight * track.steps.size for track in self.devices)

    @property
    def known_device_steps(self) -> int:
        """The same of those whose times are known: what sums of times are divided by."""
        return sum(track.weight * int(track.known.sum()) for track in self.devices)

    @property
    def lost_rows(self) -> Mask:
        """Which communications are of unknown device while others are known: they count as volumes, in no time."""
        return self.comms["device"].eq(UNKNOWN).to_numpy() & self.has_devices


def _track(
    device: int, timeline: Timeline, comms: pd.DataFrame, computes: pd.DataFrame, marks: pd.DataFrame, lost: Set[int]
) -> DeviceTrack:
    """`lost`: the steps that have events of unknown device."""
    begins, ends = spans(marks)
    rows = _rows_of(comms["device"].to_numpy(), device)
    own = comms[rows]
    starts, stops = spans(own)
    at = np.searchsorted(begins, starts, side="right") - 1
    inside = (at >= 0) & (starts < ends[np.maximum(at, 0)])
    busy = Union.of(*spans(computes[_rows_of(computes["device"].to_numpy(), device)]))
    steps = marks["step"].to_numpy(np.int32)
    shows = (Union.of(starts, stops) | busy).inside(begins, ends) > 0
    return DeviceTrack(
        device=device,
        stands_for=timeline.stands_for.get(device, (device,)),
        steps=steps,
        begins=begins,
        ends=ends,
        rows=rows,
        starts=starts,
        stops=stops,
        waits=own["wait_ns"].to_numpy(np.float64),
        at=np.where(inside, at, -1),
        busy=busy,
        known=shows | ~np.isin(steps, list(lost)),
    )


def spans(rows: pd.DataFrame) -> tuple[Times, Times]:
    """Starts and ends of events or steps."""
    starts = rows["start_ns"].to_numpy(np.float64)
    return starts, starts + rows["duration_ns"].to_numpy(np.float64)


def _rows_of(devices: NDArray[np.int32], device: int) -> "slice[int, int, int]":
    return slice(int(np.searchsorted(devices, device, "left")), int(np.searchsorted(devices, device, "right")))


def _waiting(comms: pd.DataFrame) -> list[str]:
    """Where the waiting of only some communications is shown, the mean is of these."""
    dark = int(comms["wait_ns"].isna().sum())
    return [f"{dark} of {len(comms)} communications do not show how long they wait"] * (0 < dark < len(comms))


def _notes(
    timeline: Timeline, summed: NDArray[np.int32], tracks: Sequence[DeviceTrack], has_devices: bool
) -> tuple[str, ...]:
    """What the means leave out, and how they are formed where devices are unknown."""
    found = list(timeline.notes)
    if not has_devices:
        many = timeline.num_devices
        by = f"divided by the {many} devices" if many > 1 else "of all devices together, whose number is unknown"
        found.append(f"events have no device: times are unknown; executions and payload are {by}")
        return tuple(found)
    void = int(timeline.steps["duration_ns"].le(0).sum())
    if void:
        found.append(f"{void} steps of no length are left out")
    lost = int((summed == UNKNOWN).sum())
    if lost:
        found.append(f"{lost} of {summed.size} events bear no device: they are in no time, and in volumes only")
    dark = sum(int((~track.known).sum()) for track in tracks)
    if dark:
        of = sum(track.known.size for track in tracks)
        found.append(f"{dark} of {of} steps of single devices show no other event: means of times leave them out")
    stray = sorted(set(np.unique(summed).tolist()) - {track.device for track in tracks} - {UNKNOWN})
    if stray:
        found.append(f"devices {', '.join(map(str, stray))} have events and no steps: they are left out")
    return tuple(found)
