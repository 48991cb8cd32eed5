"""The table that all means are formed of: for each device and step, how long what took."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.timing.arrays import Ints, Times
from compare.timing.intervals import Union
from compare.timing.tracks.tracks import DeviceTrack, DeviceTracks

TIMES = ["step_ns", "communication_ns", "exposed_ns", "hidden_ns", "wait_ns", "compute_ns"]
VOLUMES = ["executions", "payload_bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One row for each device, step and value of the columns `by`."""

    by: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    """The values of `by`, sorted."""
    key: Ints
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


def measure_times(tracks: DeviceTracks, *, by: Sequence[str] = ()) -> Table:
    """How long what took, by columns of the timeline's events (`axes`, `kind`, `scope`, `collective`).

    Times are lengths of unions of intervals inside the step; executions and their payload count where they start.
    Rows without communication are there, with zeros; what cannot be told is NaN.
    """
    names, codes = tracks.keys(by)
    waited = np.bincount(codes, weights=tracks.comms["wait_ns"].notna(), minlength=len(names)) > 0
    payload = tracks.comms["payload_bytes"].to_numpy(np.float64)
    lost = _lost(tracks, codes, payload, len(names))
    keys: list[Ints] = []
    columns: dict[str, list[Times]] = {name: [] for name in ("device", "step", "weight", "known", *TIMES, *VOLUMES)}
    for track in tracks.devices:
        size, own, computing = track.steps.size, codes[track.rows], track.busy.inside(track.begins, track.ends)
        fixed = {
            "device": np.full(size, track.device, np.float64),
            "step": track.steps.astype(np.float64),
            "weight": np.full(size, track.weight, np.float64),
            "known": track.known.astype(np.float64),
        }
        for code in range(len(names)):
            chosen = np.flatnonzero(own == code)
            found = _times(track, computing, chosen, has_devices=tracks.has_devices, waited=bool(waited[code]))
            found |= _volumes(track, chosen, payload[track.rows], share=1 if tracks.has_devices else track.weight)
            keys.append(np.full(size, code, np.int64))
            for name, values in (fixed | found).items():
                columns[name].append(values + lost[name][code] if name in lost else values)
    joined = {name: np.concatenate(values) if values else np.empty(0) for name, values in columns.items()}
    key = np.concatenate(keys) if keys else np.empty(0, np.int64)
    return Table(by=tuple(by), names=tuple(names), key=key, columns=joined)


def _lost(tracks: DeviceTracks, codes: Ints, payload: Times, size: int) -> dict[str, Times]:
    """Volumes of communications of unknown device, spread evenly over all devices and steps."""
    lost = np.flatnonzero(tracks.lost_rows & (tracks.comms["step"].to_numpy() >= 0))
    if not lost.size:
        return {}
    return {
        "executions": np.bincount(codes[lost], minlength=size) / tracks.device_steps,
        "payload_bytes": np.bincount(codes[lost], weights=payload[lost], minlength=size) / tracks.device_steps,
    }


def _times(track: DeviceTrack, computing: Times, chosen: Ints, *, has_devices: bool, waited: bool) -> dict[str, Times]:
    begins, ends = track.begins, track.ends
    found = {"step_ns": ends - begins}
    unknown = np.full(begins.size, np.nan)
    if not has_devices:
        return found | dict.fromkeys(TIMES[1:], unknown)
    in_flight = Union.of(track.starts[chosen], track.stops[chosen])
    communicating = in_flight.inside(begins, ends)
    hidden = np.minimum((in_flight & track.busy).inside(begins, ends), communicating)
    return found | {
        "communication_ns": communicating,
        "exposed_ns": communicating - hidden,
        "hidden_ns": hidden,
        "wait_ns": waits_of(track, chosen).inside(begins, ends) if waited else unknown,
        "compute_ns": computing,
    }


def waits_of(track: DeviceTrack, chosen: Ints) -> Union:
    """When the device waits in some of its communications: a wait comes first, the transfer after it."""
    waits = np.nan_to_num(track.waits[chosen], nan=0.0)
    return Union.of(track.starts[chosen], np.minimum(track.starts[chosen] + waits, track.stops[chosen]))


def _volumes(track: DeviceTrack, chosen: Ints, payload: Times, *, share: int) -> dict[str, Times]:
    inside = chosen[track.at[chosen] >= 0]
    counts, size = track.at[inside], track.steps.size
    return {
        "executions": np.bincount(counts, minlength=size) / share,
        "payload_bytes": np.bincount(counts, weights=payload[inside], minlength=size) / share,
    }


def sum_volumes(tracks: DeviceTracks, *, by: Sequence[str]) -> pd.DataFrame:
    """Columns: those of `by`, VOLUMES; the same means as those of `measure_times`, quick for many values of `by`."""
    names, codes = tracks.keys(by)
    payload = tracks.comms["payload_bytes"].to_numpy(np.float64)
    weights = np.where(tracks.lost_rows & (tracks.comms["step"].to_numpy() >= 0), 1.0, 0.0)
    for track in tracks.devices:
        weights[track.rows] = np.where(track.at >= 0, track.weight if tracks.has_devices else 1, 0)
    sums = np.bincount(codes, weights=weights, minlength=len(names))
    sizes = np.bincount(codes, weights=np.where(weights > 0, weights * payload, 0.0), minlength=len(names))
    table = {column: [name[place] for name in names] for place, column in enumerate(by)}
    return pd.DataFrame(
        {**table, "executions": sums / tracks.device_steps, "payload_bytes": sizes / tracks.device_steps}
    )
