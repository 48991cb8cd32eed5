"""The table behind all means: times and volumes by device and step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.timeline.arrays import Ints, Times
from compare.timeline.intervals import Union
from compare.timeline.tracks.tracks import DeviceTrack, DeviceTracks

TIMES = ["step_ns", "communication_ns", "exposed_ns", "hidden_ns", "wait_ns", "compute_ns", "copy_wait_ns"]
VOLUMES = ["executions", "payload_bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTable:
    """One row for each device, step and value of the columns `by`."""

    by: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    """The values of `by`, sorted."""
    key: Ints
    """Per row, the index into `names`."""
    columns: dict[str, Times]
    """device, step, weight, known (1 or 0), TIMES, VOLUMES."""

    def frame(self) -> pd.DataFrame:
        """Columns: device, step, weight (devices that it represents), those of `by`, TIMES, VOLUMES.

        Times are NaN where a device shows no event in a step that has events of unknown device.
        """
        names = {
            column: np.array([name[index] for name in self.names], dtype=object)[self.key]
            for index, column in enumerate(self.by)
        }
        integers = {name: self.columns[name].astype(np.int64) for name in ("device", "step", "weight")}
        known = {name: np.where(self.columns["known"] > 0, self.columns[name], np.nan) for name in TIMES}
        return pd.DataFrame({**integers, **names, **known, **{name: self.columns[name] for name in VOLUMES}})

    def means(self) -> pd.DataFrame:
        """Columns: those of `by`, TIMES, VOLUMES; weighted means over devices and steps."""
        names = {column: [name[index] for name in self.names] for index, column in enumerate(self.by)}
        return pd.DataFrame(names | self._mean_columns())

    def mean_rows(self) -> dict[tuple[str, ...], dict[str, float]]:
        """Values of `by` -> the same means; without `by`, those of `()`."""
        columns = self._mean_columns()
        return {
            name: {column: values[row] for column, values in columns.items()} for row, name in enumerate(self.names)
        }

    def _mean_columns(self) -> dict[str, list[float]]:
        weight, size = self.columns["weight"], len(self.names)
        means: dict[str, list[float]] = {}
        for name in (*TIMES, *VOLUMES):
            weights = weight * self.columns["known"] if name in TIMES else weight
            # Plain sums: a payload that is NaN in one step makes the mean NaN.
            sums = np.bincount(self.key, weights=weights * self.columns[name], minlength=size)
            device_steps = np.bincount(self.key, weights=weights, minlength=size)
            mean = np.divide(sums, device_steps, out=np.full(size, np.nan), where=device_steps > 0)
            means[name] = mean.tolist()
        return means


def measure_times(tracks: DeviceTracks, *, by: Sequence[str] = ()) -> TimeTable:
    """Times and volumes by device and step, and by columns of the events (`axes`, `kind`, `scope`, `collective`).

    Times are lengths of unions of intervals inside the step; executions and their payload count where they start.
    Rows without communication have zeros; unknown values are NaN.
    """
    names, codes = tracks.keys(by)
    waited = np.bincount(codes, weights=tracks.comms["wait_ns"].notna(), minlength=len(names)) > 0
    payload = tracks.comms["payload_bytes"].to_numpy(np.float64)
    lost = _lost(tracks, codes, payload, len(names))
    keys: list[Ints] = []
    columns: dict[str, list[Times]] = {name: [] for name in ("device", "step", "weight", "known", *TIMES, *VOLUMES)}
    for track in tracks.devices:
        size, track_codes = track.steps.size, codes[track.rows]
        busy, copying = (union.inside(track.begins, track.ends) for union in (track.busy, track.copying))
        on_core = {
            "compute_ns": busy - copying,
            "copy_wait_ns": copying if tracks.has_copies else np.full(size, np.nan),
        }
        by_step = {
            "device": np.full(size, track.device, np.float64),
            "step": track.steps.astype(np.float64),
            "weight": np.full(size, track.weight, np.float64),
            "known": track.known.astype(np.float64),
        }
        for code in range(len(names)):
            chosen = np.flatnonzero(track_codes == code)
            values_by_name = _times(track, on_core, chosen, has_devices=tracks.has_devices, waited=bool(waited[code]))
            values_by_name |= _volumes(
                track, chosen, payload[track.rows], share=1 if tracks.has_devices else track.weight
            )
            keys.append(np.full(size, code, np.int64))
            for name, values in (by_step | values_by_name).items():
                columns[name].append(values + lost[name][code] if name in lost else values)
    joined = {name: np.concatenate(values) if values else np.empty(0) for name, values in columns.items()}
    key = np.concatenate(keys) if keys else np.empty(0, np.int64)
    return TimeTable(by=tuple(by), names=tuple(names), key=key, columns=joined)


def _lost(tracks: DeviceTracks, codes: Ints, payload: Times, size: int) -> dict[str, Times]:
    """Volumes of communications of unknown device, spread evenly over all devices and steps."""
    lost = np.flatnonzero(tracks.lost_rows & (tracks.comms["step"].to_numpy() >= 0))
    if not lost.size:
        return {}
    return {
        "executions": np.bincount(codes[lost], minlength=size) / tracks.device_steps,
        "payload_bytes": np.bincount(codes[lost], weights=payload[lost], minlength=size) / tracks.device_steps,
    }


def _times(
    track: DeviceTrack, on_core: Mapping[str, Times], chosen: Ints, *, has_devices: bool, waited: bool
) -> dict[str, Times]:
    begins, ends = track.begins, track.ends
    times = {"step_ns": ends - begins}
    unknown = np.full(begins.size, np.nan)
    if not has_devices:
        return times | dict.fromkeys(TIMES[1:], unknown)
    in_flight = Union.of(track.starts[chosen], track.stops[chosen])
    communicating = in_flight.inside(begins, ends)
    hidden = np.minimum((in_flight & track.busy).inside(begins, ends), communicating)
    return times | {
        "communication_ns": communicating,
        "exposed_ns": communicating - hidden,
        "hidden_ns": hidden,
        "wait_ns": waits_of(track, chosen).inside(begins, ends) if waited else unknown,
        **on_core,
    }


def waits_of(track: DeviceTrack, chosen: Ints) -> Union:
    """When the device waits in the chosen communications: each wait comes first, the transfer after it."""
    waits = np.nan_to_num(track.waits[chosen], nan=0.0)
    return Union.of(track.starts[chosen], np.minimum(track.starts[chosen] + waits, track.stops[chosen]))


def _volumes(track: DeviceTrack, chosen: Ints, payload: Times, *, share: int) -> dict[str, Times]:
    inside = chosen[track.step_index[chosen] >= 0]
    counts, size = track.step_index[inside], track.steps.size
    return {
        "executions": np.bincount(counts, minlength=size) / share,
        "payload_bytes": np.bincount(counts, weights=payload[inside], minlength=size) / share,
    }


def sum_volumes(tracks: DeviceTracks, *, by: Sequence[str]) -> pd.DataFrame:
    """Columns: those of `by`, VOLUMES; the same means as those of `measure_times`, fast for many values of `by`."""
    names, codes = tracks.keys(by)
    payload = tracks.comms["payload_bytes"].to_numpy(np.float64)
    weights = np.where(tracks.lost_rows & (tracks.comms["step"].to_numpy() >= 0), 1.0, 0.0)
    for track in tracks.devices:
        weights[track.rows] = np.where(track.step_index >= 0, track.weight if tracks.has_devices else 1, 0)
    sums = np.bincount(codes, weights=weights, minlength=len(names))
    sizes = np.bincount(codes, weights=np.where(weights > 0, weights * payload, 0.0), minlength=len(names))
    table = {column: [name[index] for name in names] for index, column in enumerate(by)}
    return pd.DataFrame(
        {**table, "executions": sums / tracks.device_steps, "payload_bytes": sizes / tracks.device_steps}
    )
