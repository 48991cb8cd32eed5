"""Match the communications of two timelines by what they are and by their order, never by the clock.

A slower step is still the same step: what runs equally often in both is matched first to first, second to second.
Where one side runs something more often, its worst fits stay unmatched.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.timeline.arrays import Ints, Mask, Times
from compare.timeline.tracks.tracks import DeviceTrack, DeviceTracks

PAYLOAD, CONTEXT, DURATION, NAME, OFFSET = 4.0, 1.0, 1.0, 1.0, 1e-6
"""Costs of a mismatch: another payload; each communication of equal counts more or less before it; relative
difference of duration; another name; another offset in the step, which only breaks ties."""

FAR = 10
"""Cap on the difference in communications before a pair."""

MOST_CELLS = 4_000_000
"""Cells of the largest cost table; beyond it the first runs are matched and the last stay unmatched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCommunications:
    """The communications of one device in one step, by start."""

    key: Ints
    """One number per scope, axes and kind, the same in both timelines."""
    payload: Times
    offset: Times
    """From the start of the step."""
    duration: Times
    name: Ints
    """The collective that it executes, with the same numbers in both timelines."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Indices of the matched communications; all others are unmatched."""

    left: Ints
    right: Ints


def align(left: StepCommunications, right: StepCommunications) -> Pairs:
    """Match as many as possible, in order, within each key."""
    size = int(max(left.key.max(initial=-1), right.key.max(initial=-1))) + 1
    counts = [np.bincount(side.key, minlength=size) for side in (left, right)]
    equal_counts = counts[0] == counts[1]
    matched = [[_ordered(side.key, equal_counts)] for side in (left, right)]
    before = [np.cumsum(equal_counts[side.key]) for side in (left, right)]
    for key in np.flatnonzero(~equal_counts & (counts[0] > 0) & (counts[1] > 0)):
        rows = [np.flatnonzero(side.key == key) for side in (left, right)]
        few, many = (0, 1) if rows[0].size < rows[1].size else (1, 0)
        sides = (left, right)
        chosen = _chosen(_Ends(sides[few], rows[few], before[few]), _Ends(sides[many], rows[many], before[many]))
        matched[few].append(rows[few])
        matched[many].append(rows[many][chosen])
    return Pairs(*(np.concatenate(parts) for parts in matched))


def _ordered(keys: Ints, equal_counts: Mask) -> Ints:
    """Indices of the runs whose key is equally often on both sides, key by key, each in order."""
    rows = np.flatnonzero(equal_counts[keys])
    return rows[np.argsort(keys[rows], kind="stable")]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The runs of one key on one side."""

    runs: StepCommunications
    rows: Ints
    before: Ints
    """For each run of the side, the communications of equal counts up to it."""


def _chosen(few: _Ends, many: _Ends) -> Ints:
    """For each of the few, in order, its match among the many, at the least total cost.

    Dynamic programming over (i of the few, k of the many skipped so far), which pairs i with i + k.
    """
    size, spare = few.rows.size, many.rows.size - few.rows.size
    if size * (spare + 1) > MOST_CELLS:
        return np.arange(size)
    table = np.empty((size, spare + 1))
    reach = np.arange(spare + 1)
    for row in range(size):
        cost = _cost(few, row, many, row + reach)
        table[row] = cost if row == 0 else cost + np.minimum.accumulate(table[row - 1])
    chosen = np.empty(size, dtype=np.int64)
    passed = spare
    for row in range(size - 1, -1, -1):
        passed = int(np.argmin(table[row, : passed + 1]))
        chosen[row] = row + passed
    return chosen


def _cost(few: _Ends, row: int, many: _Ends, columns: Ints) -> Times:
    """The cost of matching one of the few with each of some of the many."""
    run, others = few.rows[row], many.rows[columns]
    runs, other_runs = few.runs, many.runs
    length = np.maximum(runs.duration[run], other_runs.duration[others])
    apart = np.abs(runs.duration[run] - other_runs.duration[others])
    relative = np.divide(apart, length, out=np.zeros_like(apart), where=length > 0)
    drift = np.abs(runs.offset[run] - other_runs.offset[others])
    span = max(float(runs.offset[-1]), float(other_runs.offset[-1]), 1.0)
    payloads = runs.payload[run], other_runs.payload[others]
    same = (payloads[0] == payloads[1]) | (np.isnan(payloads[0]) & np.isnan(payloads[1]))
    context = np.minimum(np.abs(few.before[run] - many.before[others]), FAR)
    cost: Times = PAYLOAD * ~same + CONTEXT * context + DURATION * relative + OFFSET * drift / span
    return np.asarray(cost + NAME * (runs.name[run] != other_runs.name[others]))


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
