"""The table that all means are formed of: for each device and step, how long what took."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timing.intervals import Times, Union
from compare.timing.tracks.tracks import Lane, Lanes

TIMES = ["step_ns", "communication_ns", "exposed_ns", "hidden_ns", "wait_ns", "compute_ns"]
VOLUMES = ["executions", "payload_bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One row for each device, step and value of the columns `by`."""

    by: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    """The values of `by`, sorted."""
    key: NDArray[np.int64]
    """Of each row, which of them."""
    columns: dict[str, Times]
    """device, step, weight, known (1 or 0), TIMES, VOLUMES."""

    def frame(self) -> pd.DataFrame:
        """Columns: device, step, weight (devices that it stands for), those of `by`, TIMES, VOLUMES.

        Times are NaN where no more is known of a device's step than that some events are of no known device.
        """
        names = {
            column: np.array([name[place] for name in self.names], dtype=object)[self.key]
            for place, column in enumerate(self.by)
        }
        whole = {name: self.columns[name].astype(np.int64) for name in ("device", "step", "weight")}
        known = {name: np.where(self.columns["known"] > 0, self.columns[name], np.nan) for name in TIMES}
        return pd.DataFrame({**whole, **names, **known, **{name: self.columns[name] for name in VOLUMES}})

    def means(self) -> pd.DataFrame:
        """Columns: those of `by`, TIMES, VOLUMES; over devices, each by its weight, and steps."""
        weight, size = self.columns["weight"], len(self.names)
        found = {}
        for name in (*TIMES, *VOLUMES):
            own = weight * self.columns["known"] if name in TIMES else weight
            # Sums by hand: a payload that is unknown in one step is unknown in the mean.
            sums = np.bincount(self.key, weights=own * self.columns[name], minlength=size)
            ways = np.bincount(self.key, weights=own, minlength=size)
            found[name] = np.divide(sums, ways, out=np.full(size, np.nan), where=ways > 0)
        names = {column: [name[place] for name in self.names] for place, column in enumerate(self.by)}
        return pd.DataFrame({**names, **found})


def times(lanes: Lanes, *, by: Sequence[str] = ()) -> Table:
    """How long what took, by columns of the timeline's events (`axes`, `kind`, `scope`, `collective`).

    Times are lengths of unions of intervals inside the step; executions and their payload count where they start.
    Rows without communication are there, with zeros; what cannot be told is NaN.
    """
    names, codes = lanes.keys(by)
    waited = np.bincount(codes, weights=lanes.talks["wait_ns"].notna(), minlength=len(names)) > 0
    payload = lanes.talks["payload_bytes"].to_numpy(np.float64)
    lost = _lost(lanes, codes, payload, len(names))
    keys: list[NDArray[np.int64]] = []
    columns: dict[str, list[Times]] = {name: [] for name in ("device", "step", "weight", "known", *TIMES, *VOLUMES)}
    for lane in lanes.lanes:
        size, own, computing = lane.steps.size, codes[lane.rows], lane.busy.inside(lane.begins, lane.ends)
        fixed = {"device": np.full(size, lane.device, np.float64), "step": lane.steps.astype(np.float64),
                 "weight": np.full(size, lane.weight, np.float64), "known": lane.known.astype(np.float64)}  # fmt: skip
        for code in range(len(names)):
            chosen = np.flatnonzero(own == code)
            found = _times(lane, computing, chosen, told=lanes.told, waited=bool(waited[code]))
            found |= _volumes(lane, chosen, payload[lane.rows], share=1 if lanes.told else lane.weight)
            keys.append(np.full(size, code, np.int64))
            for name, values in (fixed | found).items():
                columns[name].append(values + lost[name][code] if name in lost else values)
    joined = {name: np.concatenate(values) if values else np.empty(0) for name, values in columns.items()}
    key = np.concatenate(keys) if keys else np.empty(0, np.int64)
    return Table(by=tuple(by), names=tuple(names), key=key, columns=joined)


def _lost(lanes: Lanes, codes: NDArray[np.int64], payload: Times, size: int) -> dict[str, Times]:
    """Volumes of communications of unknown device, spread evenly over all devices and steps."""
    lost = np.flatnonzero(lanes.lost_rows & (lanes.talks["step"].to_numpy() >= 0))
    if not lost.size:
        return {}
    return {
        "executions": np.bincount(codes[lost], minlength=size) / lanes.ways,
        "payload_bytes": np.bincount(codes[lost], weights=payload[lost], minlength=size) / lanes.ways,
    }


def _times(lane: Lane, computing: Times, chosen: NDArray[np.int64], *, told: bool, waited: bool) -> dict[str, Times]:
    begins, ends = lane.begins, lane.ends
    found = {"step_ns": ends - begins}
    unknown = np.full(begins.size, np.nan)
    if not told:
        return found | dict.fromkeys(TIMES[1:], unknown)
    talking = Union.of(lane.starts[chosen], lane.stops[chosen])
    communicating = talking.inside(begins, ends)
    hidden = np.minimum(talking.inside_both(lane.busy, begins, ends), communicating)
    return found | {
        "communication_ns": communicating,
        "exposed_ns": communicating - hidden,
        "hidden_ns": hidden,
        "wait_ns": waiting(lane, chosen).inside(begins, ends) if waited else unknown,
        "compute_ns": computing,
    }


def waiting(lane: Lane, chosen: NDArray[np.int64]) -> Union:
    """When the device waits in some of its communications: a wait comes first, the transfer after it."""
    waits = np.nan_to_num(lane.waits[chosen], nan=0.0)
    return Union.of(lane.starts[chosen], np.minimum(lane.starts[chosen] + waits, lane.stops[chosen]))


def _volumes(lane: Lane, chosen: NDArray[np.int64], payload: Times, *, share: int) -> dict[str, Times]:
    inside = chosen[lane.at[chosen] >= 0]
    counts, size = lane.at[inside], lane.steps.size
    return {
        "executions": np.bincount(counts, minlength=size) / share,
        "payload_bytes": np.bincount(counts, weights=payload[inside], minlength=size) / share,
    }


def volumes(lanes: Lanes, *, by: Sequence[str]) -> pd.DataFrame:
    """Columns: those of `by`, VOLUMES; the same means as those of `times`, quick for many values of `by`."""
    names, codes = lanes.keys(by)
    payload = lanes.talks["payload_bytes"].to_numpy(np.float64)
    weights = np.where(lanes.lost_rows & (lanes.talks["step"].to_numpy() >= 0), 1.0, 0.0)
    for lane in lanes.lanes:
        weights[lane.rows] = np.where(lane.at >= 0, lane.weight if lanes.told else 1, 0)
    sums = np.bincount(codes, weights=weights, minlength=len(names))
    sizes = np.bincount(codes, weights=np.where(weights > 0, weights * payload, 0.0), minlength=len(names))
    table = {column: [name[place] for name in names] for place, column in enumerate(by)}
    return pd.DataFrame({**table, "executions": sums / lanes.ways, "payload_bytes": sizes / lanes.ways})
