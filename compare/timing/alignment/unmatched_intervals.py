"""Stretches of communication that one timeline has and another has not."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.timing.alignment.align import StepCommunications, align
from compare.timing.arrays import Ints, Mask
from compare.timing.tracks.tracks import DeviceTrack, DeviceTracks

LEFT, RIGHT = "left", "right"

KEYS = ["scope", "axes", "kind"]
"""What two communications must share to be the same one."""

WORDS = ["collective", *KEYS]

_COLUMNS = ["side", "device", "weight", "step", "start_ns", "duration_ns", "communication_ns", "exposed_ns",
            "executions", *WORDS]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """What nothing on the other side matches."""

    stretches: pd.DataFrame
    """side, device, weight (devices for which it stands), step (of its own timeline), start_ns (from the step's start),
    duration_ns (to the end of its last), communication_ns and exposed_ns (sums over its executions), executions,
    collective, scope, axes, kind."""
    ways: int
    """Devices times steps that were held against each other."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One timeline; its communications numbered by what they are, alike on both sides."""

    name: str
    tracks: DeviceTracks
    key: Ints
    collective: Ints

    def track(self, device: int) -> DeviceTrack:
        return next(track for track in self.tracks.devices if track.device == device)

    def rows(self, track: DeviceTrack, place: int) -> Ints:
        """The communications that start in a step."""
        return np.flatnonzero(track.at == place) + int(track.rows.start)

    def runs(self, track: DeviceTrack, place: int) -> StepCommunications:
        rows = self.rows(track, place)
        own = rows - track.rows.start
        return StepCommunications(
            key=self.key[rows],
            payload=self.tracks.comms["payload_bytes"].to_numpy(np.float64)[rows],
            offset=track.starts[own] - track.begins[place],
            duration=track.stops[own] - track.starts[own],
            name=self.collective[rows],
        )


def find_unmatched(left: DeviceTracks, right: DeviceTracks) -> Unmatched:
    """Hold the nth step of one against the nth of the other, device by device.

    A stretch is a run of successive executions of one collective that are left over, with no other communication of
    the device between them.
    """
    if not (left.has_devices and right.has_devices):
        note = "stretches are not told where events bear no device"
        return Unmatched(stretches=pd.DataFrame(columns=_COLUMNS), ways=0, notes=(note,))
    sides = _numbered(left, right)
    devices = _devices(left, right)
    tables, ways = [pd.DataFrame(columns=_COLUMNS)], 0
    for pair, weight in devices.items():
        tracks = [side.track(device) for side, device in zip(sides, pair, strict=True)]
        for place in np.flatnonzero(_both(tracks)).tolist():
            pairs = align(*(side.runs(track, place) for side, track in zip(sides, tracks, strict=True)))
            ways += weight
            for side, track, matched in zip(sides, tracks, (pairs.left, pairs.right), strict=True):
                alone = np.delete(np.arange(side.rows(track, place).size), matched)
                if alone.size:
                    tables.append(_table(side, track, place, alone).assign(weight=weight))
    frame = pd.concat(tables[1:] or tables, ignore_index=True)
    return Unmatched(stretches=frame[_COLUMNS], ways=ways, notes=tuple(_notes(left, right, devices)))


def _both(tracks: Sequence[DeviceTrack]) -> Mask:
    """Of the steps that both have, in which both are known."""
    many = min(track.steps.size for track in tracks)
    known: Mask = np.logical_and(*(track.known[:many] for track in tracks))
    return known


def _numbered(left: DeviceTracks, right: DeviceTracks) -> tuple[_Side, _Side]:
    """Keys and collectives of all communications, the same number for the same words on both sides."""
    both = pd.concat([tracks.comms[WORDS].astype(str) for tracks in (left, right)], ignore_index=True)
    key = both.groupby(KEYS, sort=False).ngroup().to_numpy().astype(np.int64)
    collective = pd.factorize(both["collective"])[0].astype(np.int64)
    cut = len(left.comms)
    return (
        _Side(name=LEFT, tracks=left, key=key[:cut], collective=collective[:cut]),
        _Side(name=RIGHT, tracks=right, key=key[cut:], collective=collective[cut:]),
    )


def _devices(left: DeviceTracks, right: DeviceTracks) -> Counter[tuple[int, int]]:
    """Pairs of shown devices that stand for the same one, and for how many."""
    shown = [
        {one: track.device for track in tracks.devices
         for one in tracks.timeline.stands_for.get(track.device, (track.device,))}
        for tracks in (left, right)
    ]  # fmt: skip
    return Counter((shown[0][one], shown[1][one]) for one in shown[0] if one in shown[1])


def _notes(left: DeviceTracks, right: DeviceTracks, devices: Counter[tuple[int, int]]) -> Iterator[str]:
    common = devices.total()
    for name, tracks in ((LEFT, left), (RIGHT, right)):
        many = sum(track.weight for track in tracks.devices)
        if many > common:
            yield f"{name}: {many - common} of {many} devices are not in the other timeline; stretches leave them out"
    counts = [max(track.steps.size for track in tracks.devices) for tracks in (left, right)]
    if counts[0] != counts[1]:
        yield f"{counts[0]} steps on the left, {counts[1]} on the right: stretches are of the first {min(counts)}"


def _table(side: _Side, track: DeviceTrack, place: int, alone: Ints) -> pd.DataFrame:
    """The stretches of one device and step; `alone` are places among its communications, by start."""
    rows = side.rows(track, place)[alone]
    names = side.collective[rows]
    first = np.flatnonzero(np.concatenate(([True], (np.diff(alone) > 1) | (names[1:] != names[:-1]))))
    own = rows - track.rows.start
    starts, stops = track.starts[own], track.stops[own]
    exposed = side.tracks.comms["exposed_ns"].to_numpy(np.float64)[rows]
    words = side.tracks.comms[WORDS].iloc[rows[first]].astype(str)
    return pd.DataFrame({
        "side": side.name, "device": track.device, "step": track.steps[place],
        "start_ns": starts[first] - track.begins[place],
        "duration_ns": np.maximum.reduceat(stops, first) - starts[first],
        "communication_ns": np.add.reduceat(stops - starts, first),
        "exposed_ns": np.add.reduceat(exposed, first),
        "executions": np.diff(np.append(first, alone.size)),
        **{name: words[name].to_numpy() for name in WORDS},
    })  # fmt: skip
