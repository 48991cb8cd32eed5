"""When the network of an axis is in use, and how much it carries: up phases, and bytes over the course of a step.

After CASSINI (Rajasekaran, Ghobadi & Akella, NSDI 2024), whose circle has the step as its perimeter.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from compare.metrics.network.sent_bytes import SentBytes
from compare.report.model.timing import NetworkUse
from compare.timeline.arrays import Floats, Times
from compare.timeline.intervals import Union
from compare.timeline.tracks.numbers import to_number, to_ratio, to_whole
from compare.timeline.tracks.tracks import DeviceTracks

ALL = "all"
"""In place of axes: the traffic of all axes."""


def rate_traffic(tracks: DeviceTracks, cut: pd.DataFrame, sent_bytes: Mapping[str, SentBytes]) -> pd.DataFrame:
    """`cut` (from `clip_to_steps`) with wire_bytes: the bytes sent in that part, evenly over its duration.

    For a device that represents several, the mean over them; most_wire_bytes is the largest of them.  NaN where the
    payload is unknown or the collective is not in `sent_bytes` (from `bytes_sent_by`).
    """
    mean, largest = np.full(len(cut), np.nan), np.full(len(cut), np.nan)
    members = {track.device: list(track.stands_for) for track in tracks.devices}
    keys = cut["collective"].astype(str), cut["device"]
    for rows in cut.groupby(list(keys)).indices.values():
        device = int(keys[1].iloc[rows[0]])
        collective = sent_bytes.get(keys[0].iloc[rows[0]])
        if collective is not None and max(members[device]) < len(collective.factors):
            sent = collective.sent()[members[device]]
            mean[rows], largest[rows] = sent.mean(), sent.max()
    payload = tracks.comms["payload_bytes"].to_numpy(np.float64)[cut["comm"].to_numpy()] * cut["part"].to_numpy()
    return cut.assign(wire_bytes=payload * mean, most_wire_bytes=payload * largest)


def find_up_phases(carried: pd.DataFrame) -> pd.DataFrame:
    """The up phases, one row each.

    `carried`: from `rate_traffic`.  device, weight, step, axes (also ALL); start_ns from the step's start and
    duration_ns; wire_bytes that the device sends in it, peak_bytes_per_s the highest rate; turn_from, turn_to:
    its position as fractions of the step.
    """
    span = float(carried["step_ns"].max()) + 1 if len(carried) else 1.0
    tables = [_up(rows, str(axes), span) for axes, rows in carried.groupby("axes", observed=True)]
    frame = pd.concat([*tables, _up(carried, ALL, span)], ignore_index=True)
    step = frame.pop("step_ns")
    ends = frame["start_ns"] + frame["duration_ns"]
    return frame.assign(turn_from=frame["start_ns"] / step, turn_to=ends / step)


def _up(rows: pd.DataFrame, axes: str, span: float) -> pd.DataFrame:
    """The up phases of some traffic.  Steps are placed `span` apart, so that no two touch."""
    rows = rows[rows["duration_ns"] > 0].sort_values(["device", "place", "start_ns"], ignore_index=True)
    lap = rows[["device", "place"]].ne(rows[["device", "place"]].shift()).any(axis=1).cumsum().to_numpy() - 1
    starts = lap * span + rows["start_ns"].to_numpy()
    stops = starts + rows["duration_ns"].to_numpy()
    up = Union.of(starts, stops)
    index = np.searchsorted(up.starts, starts, side="right") - 1
    first = np.unique(index, return_index=True)[1]
    sent, largest = rows["wire_bytes"].to_numpy(), rows["most_wire_bytes"].to_numpy()
    lead = rows.iloc[first]
    return pd.DataFrame(
        {
            "device": lead["device"].to_numpy(),
            "weight": lead["weight"].to_numpy(),
            "step": lead["step"].to_numpy(),
            "step_ns": lead["step_ns"].to_numpy(),
            "axes": axes,
            "start_ns": lead["start_ns"].to_numpy(),
            "duration_ns": up.ends - up.starts,
            "wire_bytes": np.bincount(index, weights=sent, minlength=first.size),
            "peak_bytes_per_s": _peaks(starts, stops, largest, up) * 1e9,
        }
    )


def _peaks(starts: Times, stops: Times, sent: Times, up: Union) -> Times:
    """The highest sum of rates in each interval of `up`, in bytes per ns."""
    if not starts.size:
        return np.empty(0)
    rates = sent / (stops - starts)
    edges = np.unique(np.concatenate((starts, stops)))
    change = np.zeros(edges.size)
    np.add.at(change, np.searchsorted(edges, starts), rates)
    np.add.at(change, np.searchsorted(edges, stops), -rates)
    return np.maximum.reduceat(np.cumsum(change), np.searchsorted(edges, up.starts))


def summarize_network(tracks: DeviceTracks, table: pd.DataFrame) -> dict[str, NetworkUse]:
    """axes -> duty_cycle, up_phases (mean per device and step), bytes_per_up_phase, peak_bytes_per_s (maximum)."""
    lasts = sum(track.weight * float((track.ends - track.begins)[track.known].sum()) for track in tracks.devices)
    result = {}
    for axes, rows in table.groupby("axes", sort=True):
        weight = rows["weight"]
        count = float(weight.sum())
        result[str(axes)] = NetworkUse(
            duty_cycle=to_ratio(float((weight * rows["duration_ns"]).sum()), lasts),
            up_phases=to_number(count / tracks.known_device_steps),
            bytes_per_up_phase=to_number(float((weight * rows["wire_bytes"]).sum(skipna=False)) / count),
            peak_bytes_per_s=to_whole(float(rows["peak_bytes_per_s"].max(skipna=False))),
        )
    return result


BINS = 240

_COLUMNS = ["axes", "bin", "turn_from", "turn_to", "start_ns", "wire_bytes", "sum_wire_bytes", "up"]


def bin_volume(tracks: DeviceTracks, carried: pd.DataFrame, up: pd.DataFrame, *, bins: int = BINS) -> pd.DataFrame:
    """Means over devices and steps, each step divided into `bins` equal parts.

    carried: from `rate_traffic`.  up: from `find_up_phases`.

    axes (also ALL); bin; turn_from and turn_to, as fractions of the step; start_ns, in the mean step; wire_bytes that a
    device sends in it; sum_wire_bytes, cumulative; up, the fraction of it in which the network is in use.
    """
    device_steps = max(tracks.known_device_steps, 1)
    mean = (
        sum(track.weight * float((track.ends - track.begins)[track.known].sum()) for track in tracks.devices)
        / device_steps
    )
    edges = np.arange(bins + 1) / bins
    tables = []
    for axes, phases in up.groupby("axes", sort=True):
        rows = carried if axes == ALL else carried[carried["axes"].eq(axes)]
        amount = (rows["weight"] * rows["wire_bytes"]).to_numpy(np.float64) / device_steps
        turns = [(rows[name] / rows["step_ns"]).to_numpy() for name in ("start_ns", "duration_ns")]
        sent = _spread(turns[0], turns[1], amount, bins)
        begin, length = phases["turn_from"].to_numpy(), (phases["turn_to"] - phases["turn_from"]).to_numpy()
        shown = _spread(begin, length, length * phases["weight"].to_numpy() / device_steps, bins) * bins
        tables.append(
            pd.DataFrame(
                {
                    "axes": axes,
                    "bin": np.arange(bins),
                    "turn_from": edges[:-1],
                    "turn_to": edges[1:],
                    "start_ns": edges[:-1] * mean,
                    "wire_bytes": sent,
                    "sum_wire_bytes": np.cumsum(sent),
                    "up": shown,
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)


def _spread(begin: Times, length: Times, amount: Times, bins: int) -> Floats:
    """Amounts per bin, each spread evenly over its length; begins and ends are between 0 and 1."""
    last = begin + length
    first_bin = np.clip(np.floor(begin * bins).astype(np.int64), 0, bins - 1)
    last_bin = np.clip(np.ceil(last * bins).astype(np.int64) - 1, first_bin, bins - 1)
    times = last_bin - first_bin + 1
    rows = np.repeat(np.arange(times.size), times)
    bin_index = first_bin[rows] + np.arange(rows.size) - np.repeat(np.cumsum(times) - times, times)
    # The first bin takes everything before its end, the last everything from its start: nothing is lost to rounding.
    low = np.where(bin_index == first_bin[rows], begin[rows], bin_index / bins)
    high = np.where(bin_index == last_bin[rows], last[rows], (bin_index + 1) / bins)
    part = np.divide(high - low, length[rows], out=np.ones(rows.size), where=length[rows] > 0)
    return np.bincount(bin_index, weights=amount[rows] * part, minlength=bins).astype(np.float64)
