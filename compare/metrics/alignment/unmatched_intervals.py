"""Intervals of communication in one timeline without a match in the other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.metrics.alignment.align import StepCommunications, align
from compare.timeline.arrays import Ints, Mask
from compare.timeline.tracks.tracks import DeviceTrack, DeviceTracks

LEFT, RIGHT = "left", "right"

KEYS = ["scope", "axes", "kind"]
"""What two communications must have in common to match."""

WORDS = ["collective", *KEYS]

_COLUMNS = [
    "side",
    "device",
    "weight",
    "step",
    "start_ns",
    "duration_ns",
    "communication_ns",
    "exposed_ns",
    "executions",
    *WORDS,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """Communication without a match on the other side."""

    stretches: pd.DataFrame
    """side, device, weight (devices that it represents), step (of its own timeline), start_ns (from the step's start),
    duration_ns (to the end of its last), communication_ns and exposed_ns (sums over its executions), executions,
    collective, scope, axes, kind."""
    device_steps: int
    """Devices times steps that were compared."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One timeline; its communications are numbered by what they are, with the same numbers on both sides."""

    name: str
    tracks: DeviceTracks
    key: Ints
    collective: Ints

    def track(self, device: int) -> DeviceTrack:
        return next(track for track in self.tracks.devices if track.device == device)

    def rows(self, track: DeviceTrack, step: int) -> Ints:
        """Rows of the communications that start in a step (by index)."""
        return np.flatnonzero(track.step_index == step) + int(track.rows.start)

    def runs(self, track: DeviceTrack, step: int) -> StepCommunications:
        rows = self.rows(track, step)
        track_rows = rows - track.rows.start
        return StepCommunications(
            key=self.key[rows],
            payload=self.tracks.comms["payload_bytes"].to_numpy(np.float64)[rows],
            offset=track.starts[track_rows] - track.begins[step],
            duration=track.stops[track_rows] - track.starts[track_rows],
            name=self.collective[rows],
        )


def find_unmatched(left: DeviceTracks, right: DeviceTracks) -> Unmatched:
    """Compare the nth step of one with the nth of the other, device by device.

    An interval is a run of successive unmatched executions of one collective, with no other communication of the device
    between them.
    """
    if not (left.has_devices and right.has_devices):
        note = "unmatched intervals are unknown where events name no device"
        return Unmatched(stretches=pd.DataFrame(columns=_COLUMNS), device_steps=0, notes=(note,))
    sides = _numbered(left, right)
    devices = _devices(left, right)
    tables, device_steps = [pd.DataFrame(columns=_COLUMNS)], 0
    for pair, weight in devices.items():
        tracks = [side.track(device) for side, device in zip(sides, pair, strict=True)]
        for step in np.flatnonzero(_both(tracks)).tolist():
            pairs = align(*(side.runs(track, step) for side, track in zip(sides, tracks, strict=True)))
            device_steps += weight
            for side, track, matched in zip(sides, tracks, (pairs.left, pairs.right), strict=True):
                alone = np.delete(np.arange(side.rows(track, step).size), matched)
                if alone.size:
                    tables.append(_table(side, track, step, alone).assign(weight=weight))
    frame = pd.concat(tables[1:] or tables, ignore_index=True)
    return Unmatched(stretches=frame[_COLUMNS], device_steps=device_steps, notes=tuple(_notes(left, right, devices)))


def _both(tracks: Sequence[DeviceTrack]) -> Mask:
    """For each step that both have, whether its times are known on both sides."""
    num_steps = min(track.steps.size for track in tracks)
    known: Mask = np.logical_and(*(track.known[:num_steps] for track in tracks))
    return known


def _numbered(left: DeviceTracks, right: DeviceTracks) -> tuple[_Side, _Side]:
    """Keys and collectives of all communications as numbers, the same on both sides."""
    both = pd.concat([tracks.comms[WORDS].astype(str) for tracks in (left, right)], ignore_index=True)
    key = both.groupby(KEYS, sort=False).ngroup().to_numpy().astype(np.int64)
    collective = pd.factorize(both["collective"])[0].astype(np.int64)
    cut = len(left.comms)
    return (
        _Side(name=LEFT, tracks=left, key=key[:cut], collective=collective[:cut]),
        _Side(name=RIGHT, tracks=right, key=key[cut:], collective=collective[cut:]),
    )


def _devices(left: DeviceTracks, right: DeviceTracks) -> Counter[tuple[int, int]]:
    """(left, right) pairs of shown devices that represent the same device -> how many devices."""
    shown = [
        {
            represented: track.device
            for track in tracks.devices
            for represented in tracks.timeline.stands_for.get(track.device, (track.device,))
        }
        for tracks in (left, right)
    ]
    return Counter(
        (shown[0][represented], shown[1][represented]) for represented in shown[0] if represented in shown[1]
    )


def _notes(left: DeviceTracks, right: DeviceTracks, devices: Counter[tuple[int, int]]) -> Iterator[str]:
    common = devices.total()
    for name, tracks in ((LEFT, left), (RIGHT, right)):
        num_devices = sum(track.weight for track in tracks.devices)
        if num_devices > common:
            missing = f"{num_devices - common} of {num_devices} devices are not in the other timeline"
            yield f"{name}: {missing}; unmatched intervals leave them out"
    counts = [max(track.steps.size for track in tracks.devices) for tracks in (left, right)]
    if counts[0] != counts[1]:
        steps = f"{counts[0]} steps on the left, {counts[1]} on the right"
        yield f"{steps}: unmatched intervals are of the first {min(counts)}"


def _table(side: _Side, track: DeviceTrack, step: int, alone: Ints) -> pd.DataFrame:
    """The intervals of one device and step; `alone` are indices into its communications, by start."""
    rows = side.rows(track, step)[alone]
    names = side.collective[rows]
    first = np.flatnonzero(np.concatenate(([True], (np.diff(alone) > 1) | (names[1:] != names[:-1]))))
    track_rows = rows - track.rows.start
    starts, stops = track.starts[track_rows], track.stops[track_rows]
    exposed = side.tracks.comms["exposed_ns"].to_numpy(np.float64)[rows]
    words = side.tracks.comms[WORDS].iloc[rows[first]].astype(str)
    return pd.DataFrame(
        {
            "side": side.name,
            "device": track.device,
            "step": track.steps[step],
            "start_ns": starts[first] - track.begins[step],
            "duration_ns": np.maximum.reduceat(stops, first) - starts[first],
            "communication_ns": np.add.reduceat(stops - starts, first),
            "exposed_ns": np.add.reduceat(exposed, first),
            "executions": np.diff(np.append(first, alone.size)),
            **{name: words[name].to_numpy() for name in WORDS},
        }
    )
