"""Stretches of communication that one timeline has and another has not."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timing.alignment.align import Runs, align
from compare.timing.tracks.tracks import Lane, Lanes

LEFT, RIGHT = "left", "right"

KEYS = ["scope", "axes", "kind"]
"""What two communications must share to be the same one."""

WORDS = ["collective", *KEYS]

_COLUMNS = ["side", "device", "weight", "step", "start_ns", "duration_ns", "communication_ns", "exposed_ns",
            "executions", *WORDS]  # fmt: skip

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOver:
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
    lanes: Lanes
    key: Whole
    collective: Whole

    def lane(self, device: int) -> Lane:
        return next(lane for lane in self.lanes.lanes if lane.device == device)

    def rows(self, lane: Lane, place: int) -> Whole:
        """The communications that start in a step."""
        return np.flatnonzero(lane.at == place) + int(lane.rows.start)

    def runs(self, lane: Lane, place: int) -> Runs:
        rows = self.rows(lane, place)
        own = rows - lane.rows.start
        return Runs(
            key=self.key[rows],
            payload=self.lanes.talks["payload_bytes"].to_numpy(np.float64)[rows],
            offset=lane.starts[own] - lane.begins[place],
            duration=lane.stops[own] - lane.starts[own],
            name=self.collective[rows],
        )


def left_over(left: Lanes, right: Lanes) -> LeftOver:
    """Hold the nth step of one against the nth of the other, device by device.

    A stretch is a run of successive executions of one collective that are left over, with no other communication of
    the device between them.
    """
    if not (left.told and right.told):
        note = "stretches are not told where events bear no device"
        return LeftOver(stretches=pd.DataFrame(columns=_COLUMNS), ways=0, notes=(note,))
    sides = _numbered(left, right)
    devices = _devices(left, right)
    tables, ways = [pd.DataFrame(columns=_COLUMNS)], 0
    for pair, weight in devices.items():
        lanes = [side.lane(device) for side, device in zip(sides, pair, strict=True)]
        for place in np.flatnonzero(_both(lanes)).tolist():
            pairs = align(*(side.runs(lane, place) for side, lane in zip(sides, lanes, strict=True)))
            ways += weight
            for side, lane, matched in zip(sides, lanes, (pairs.left, pairs.right), strict=True):
                alone = np.delete(np.arange(side.rows(lane, place).size), matched)
                if alone.size:
                    tables.append(_table(side, lane, place, alone).assign(weight=weight))
    frame = pd.concat(tables[1:] or tables, ignore_index=True)
    return LeftOver(stretches=frame[_COLUMNS], ways=ways, notes=tuple(_notes(left, right, devices)))


def _both(lanes: Sequence[Lane]) -> NDArray[np.bool_]:
    """Of the steps that both have, in which both are known."""
    many = min(lane.steps.size for lane in lanes)
    known: NDArray[np.bool_] = np.logical_and(*(lane.known[:many] for lane in lanes))
    return known


def _numbered(left: Lanes, right: Lanes) -> tuple[_Side, _Side]:
    """Keys and collectives of all communications, the same number for the same words on both sides."""
    both = pd.concat([lanes.talks[WORDS].astype(str) for lanes in (left, right)], ignore_index=True)
    key = both.groupby(KEYS, sort=False).ngroup().to_numpy().astype(np.int64)
    collective = pd.factorize(both["collective"])[0].astype(np.int64)
    cut = len(left.talks)
    return (
        _Side(name=LEFT, lanes=left, key=key[:cut], collective=collective[:cut]),
        _Side(name=RIGHT, lanes=right, key=key[cut:], collective=collective[cut:]),
    )


def _devices(left: Lanes, right: Lanes) -> Counter[tuple[int, int]]:
    """Pairs of shown devices that stand for the same one, and for how many."""
    shown = [
        {one: lane.device for lane in lanes.lanes
         for one in lanes.timeline.stands_for.get(lane.device, (lane.device,))}
        for lanes in (left, right)
    ]  # fmt: skip
    return Counter((shown[0][one], shown[1][one]) for one in shown[0] if one in shown[1])


def _notes(left: Lanes, right: Lanes, devices: Counter[tuple[int, int]]) -> Iterator[str]:
    common = devices.total()
    for name, lanes in ((LEFT, left), (RIGHT, right)):
        many = sum(lane.weight for lane in lanes.lanes)
        if many > common:
            yield f"{name}: {many - common} of {many} devices are not in the other timeline; stretches leave them out"
    counts = [max(lane.steps.size for lane in lanes.lanes) for lanes in (left, right)]
    if counts[0] != counts[1]:
        yield f"{counts[0]} steps on the left, {counts[1]} on the right: stretches are of the first {min(counts)}"


def _table(side: _Side, lane: Lane, place: int, alone: Whole) -> pd.DataFrame:
    """The stretches of one device and step; `alone` are places among its communications, by start."""
    rows = side.rows(lane, place)[alone]
    names = side.collective[rows]
    first = np.flatnonzero(np.concatenate(([True], (np.diff(alone) > 1) | (names[1:] != names[:-1]))))
    own = rows - lane.rows.start
    starts, stops = lane.starts[own], lane.stops[own]
    exposed = side.lanes.talks["exposed_ns"].to_numpy(np.float64)[rows]
    words = side.lanes.talks[WORDS].iloc[rows[first]].astype(str)
    return pd.DataFrame({
        "side": side.name, "device": lane.device, "step": lane.steps[place],
        "start_ns": starts[first] - lane.begins[place],
        "duration_ns": np.maximum.reduceat(stops, first) - starts[first],
        "communication_ns": np.add.reduceat(stops - starts, first),
        "exposed_ns": np.add.reduceat(exposed, first),
        "executions": np.diff(np.append(first, alone.size)),
        **{name: words[name].to_numpy() for name in WORDS},
    })  # fmt: skip
