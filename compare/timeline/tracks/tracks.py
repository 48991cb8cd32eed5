"""A timeline as tracks: for each device its steps, its communications and its compute."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timeline.arrays import Ints, Mask, Times
from compare.timeline.errors import TimingError
from compare.timeline.intervals import Union, subtract
from compare.timeline.timeline import COMMUNICATION, COPY, OCCUPIED, UNKNOWN, Timeline, has_role, steps_by_device


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTrack:
    """One device that the timeline shows."""

    device: int
    stands_for: tuple[int, ...]
    """The devices that it represents, itself included."""
    steps: NDArray[np.int32]
    begins: Times
    ends: Times
    """Start and end of each step, in order."""
    rows: "slice[int, int, int]"
    """Its rows in `DeviceTracks.comms`."""
    starts: Times
    stops: Times
    waits: Times
    """Start, end and wait of its communications, by start; NaN where the wait is not shown."""
    step_index: Ints
    """The step in which each communication starts, as an index into `steps`; -1 outside all."""
    busy: Union
    """When it computes, or waits for a local copy."""
    copying: Union
    """Of that, when it waits for a local copy."""
    known: Mask
    """Per step, whether its times are known: not where it shows no event while some events have no known device."""

    @property
    def weight(self) -> int:
        """The number of devices that it represents."""
        return len(self.stands_for)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTracks:
    """All devices; `has_devices`: whether any event names its device."""

    timeline: Timeline
    comms: pd.DataFrame
    """The communications, by device and start."""
    devices: tuple[DeviceTrack, ...]
    has_devices: bool
    """If not, there is one track for all devices together: it has volumes, but no times."""
    has_copies: bool
    """Whether any device shows that it waits for local copies."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, timeline: Timeline) -> "DeviceTracks":
        """Raises `TimingError` where there are no steps."""
        if not timeline.steps["duration_ns"].gt(0).any():
            raise TimingError("the timeline has no step that lasts; a reader gives at least one, the whole span")
        events = timeline.events
        communicating, computing = has_role(events, (COMMUNICATION,)), has_role(events, OCCUPIED)
        comms = events[communicating].reset_index(drop=True)
        devices = events["device"].to_numpy()
        used_devices = devices[communicating | computing]
        has_devices = bool((used_devices != UNKNOWN).any()) or not used_devices.size
        marks = steps_by_device(timeline.steps[timeline.steps["duration_ns"] > 0])
        default_marks = marks.get(UNKNOWN, next(iter(marks.values())))
        shown = {UNKNOWN}
        if has_devices:
            shown = {*marks, *(np.unique(used_devices).tolist() if UNKNOWN in marks else ())} - {UNKNOWN}
        executing = set(timeline.executions["device"].unique().tolist()) if len(timeline.executions) else set()
        silent = sorted((shown & executing) - set(np.unique(devices).tolist()))
        shown -= set(silent)
        computes = events[["device", "role", "step", "start_ns", "duration_ns"]][computing]
        talks = comms[["device", "step", "start_ns", "duration_ns", "wait_ns"]]
        lost = {step for rows in (talks, computes) for step in rows.loc[rows["device"].eq(UNKNOWN), "step"].unique()}
        tracks = tuple(
            _track(device, timeline, talks, computes, marks.get(device, default_marks), lost if has_devices else set())
            for device in sorted(shown)
        )
        notes = (*_notes(timeline, used_devices, tracks, has_devices), *_silent(silent), *_waiting(comms))
        return cls(
            timeline=timeline,
            comms=comms,
            devices=tracks,
            has_devices=has_devices,
            has_copies=bool(has_role(events, (COPY,)).any()),
            notes=notes,
        )

    def keys(self, by: Sequence[str]) -> tuple[list[tuple[str, ...]], Ints]:
        """(distinct values of some columns, sorted; each communication's index among them)."""
        if not by:
            return [()], np.zeros(len(self.comms), dtype=np.int64)
        first, codes = distinct_rows(self.comms, by)
        names = list(zip(*(map(str, self.comms[column].array[first]) for column in by), strict=True))
        order = sorted(range(len(names)), key=names.__getitem__)
        return [names[index] for index in order], np.argsort(order)[codes]

    @property
    def device_steps(self) -> int:
        """Devices × steps: the divisor of sums of volumes."""
        return sum(track.weight * track.steps.size for track in self.devices)

    @property
    def known_device_steps(self) -> int:
        """Devices × steps with known times: the divisor of sums of times."""
        return sum(track.weight * int(track.known.sum()) for track in self.devices)

    @property
    def lost_rows(self) -> Mask:
        """Communications of unknown device while others are known: they count in volumes, but in no time."""
        return self.comms["device"].eq(UNKNOWN).to_numpy() & self.has_devices


def _track(
    device: int, timeline: Timeline, comms: pd.DataFrame, computes: pd.DataFrame, marks: pd.DataFrame, lost: Set[int]
) -> DeviceTrack:
    """`lost`: the steps that have events of unknown device."""
    begins, ends = spans(marks)
    rows = _rows_of(comms["device"].to_numpy(), device)
    device_comms = comms[rows]
    starts, stops = spans(device_comms)
    step = np.searchsorted(begins, starts, side="right") - 1
    inside = (step >= 0) & (starts < ends[np.maximum(step, 0)])
    computes = computes[_rows_of(computes["device"].to_numpy(), device)]
    is_copy = has_role(computes, (COPY,))
    busy, copying = Union.of(*spans(computes)), Union.of(*spans(computes[is_copy]))
    if copying.starts.size:  # what computes beside a wait, on another thread, is compute
        copying = subtract(copying, Union.of(*spans(computes[~is_copy])))
    steps = marks["step"].to_numpy(np.int32)
    has_events = (Union.of(starts, stops) | busy).inside(begins, ends) > 0
    return DeviceTrack(
        device=device,
        stands_for=timeline.stands_for.get(device, (device,)),
        steps=steps,
        begins=begins,
        ends=ends,
        rows=rows,
        starts=starts,
        stops=stops,
        waits=device_comms["wait_ns"].to_numpy(np.float64),
        step_index=np.where(inside, step, -1),
        busy=busy,
        copying=copying,
        known=has_events | ~np.isin(steps, list(lost)),
    )


def distinct_rows(table: pd.DataFrame, columns: Sequence[str]) -> tuple[Ints, Ints]:
    """(the first row of each distinct value of some columns of words, in their order; each row's index among them)."""
    codes = np.zeros(len(table), dtype=np.int64)
    for column in columns:
        words = pd.Categorical(table[column])
        codes, _ = pd.factorize(codes * (len(words.categories) + 1) + words.codes)
    first = np.zeros(codes.max(initial=-1) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first, codes


def spans(rows: pd.DataFrame) -> tuple[Times, Times]:
    """Starts and ends of events or steps."""
    starts = rows["start_ns"].to_numpy(np.float64)
    return starts, starts + rows["duration_ns"].to_numpy(np.float64)


def _rows_of(devices: NDArray[np.int32], device: int) -> "slice[int, int, int]":
    return slice(int(np.searchsorted(devices, device, "left")), int(np.searchsorted(devices, device, "right")))


def _silent(devices: Sequence[int]) -> list[str]:
    """A note on devices that execute programs, and whose operations the profile did not record."""
    named = ", ".join(map(str, devices))
    return [f"devices {named} execute programs, and none of their operations was recorded: no mean is over them"][
        : len(devices)
    ]


def _waiting(comms: pd.DataFrame) -> list[str]:
    """A note where only some communications show their wait: the mean is over these."""
    num_unknown = int(comms["wait_ns"].isna().sum())
    return [f"{num_unknown} of {len(comms)} communications do not show how long they wait"] * (
        0 < num_unknown < len(comms)
    )


def _notes(
    timeline: Timeline, used_devices: NDArray[np.int32], tracks: Sequence[DeviceTrack], has_devices: bool
) -> tuple[str, ...]:
    """Notes on what the means leave out, and on unknown devices."""
    notes = list(timeline.notes)
    if not has_devices:
        num_devices = timeline.num_devices
        by = (
            f"divided by the {num_devices} devices"
            if num_devices > 1
            else "of all devices together, whose number is unknown"
        )
        notes.append(f"events have no device: times are unknown; executions and payload are {by}")
        return tuple(notes)
    num_empty = int(timeline.steps["duration_ns"].le(0).sum())
    if num_empty:
        notes.append(f"{num_empty} steps of no length are left out")
    num_lost = int((used_devices == UNKNOWN).sum())
    if num_lost:
        notes.append(f"{num_lost} of {used_devices.size} events name no device: they count in volumes, but in no time")
    num_unknown = sum(int((~track.known).sum()) for track in tracks)
    if num_unknown:
        num_steps = sum(track.known.size for track in tracks)
        notes.append(
            f"{num_unknown} of {num_steps} steps of single devices show no other event: means of times leave them out"
        )
    stray = sorted(set(np.unique(used_devices).tolist()) - {track.device for track in tracks} - {UNKNOWN})
    if stray:
        notes.append(f"devices {', '.join(map(str, stray))} have events and no steps: they are left out")
    return tuple(notes)
