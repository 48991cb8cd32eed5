"""Bytes over the course of a step, and when in it the network is up: a curve, or a circle."""

import numpy as np
import pandas as pd

from compare.timing.arrays import Floats, Times
from compare.timing.metrics.network.phases import ALL
from compare.timing.tracks.tracks import DeviceTracks

BINS = 240

_COLUMNS = ["axes", "bin", "turn_from", "turn_to", "start_ns", "wire_bytes", "sum_wire_bytes", "up"]


def volume(tracks: DeviceTracks, carried: pd.DataFrame, up: pd.DataFrame, *, bins: int = BINS) -> pd.DataFrame:
    """Means over devices and steps, each step cut in `bins` equal parts; `carried` and `up`: `traffic` and `phases`.

    axes (also ALL); bin; turn_from and turn_to, in turns of the step; start_ns, of the mean step; wire_bytes that a
    device sends in it; sum_wire_bytes, up to its end; up, the part of it in which the network is up.
    """
    ways = max(tracks.known_device_steps, 1)
    mean = sum(track.weight * float((track.ends - track.begins)[track.known].sum()) for track in tracks.devices) / ways
    edges = np.arange(bins + 1) / bins
    tables = []
    for axes, phases in up.groupby("axes", sort=True):
        rows = carried if axes == ALL else carried[carried["axes"].eq(axes)]
        amount = (rows["weight"] * rows["wire_bytes"]).to_numpy(np.float64) / ways
        turns = [(rows[name] / rows["step_ns"]).to_numpy() for name in ("start_ns", "duration_ns")]
        sent = _spread(turns[0], turns[1], amount, bins)
        begin, length = phases["turn_from"].to_numpy(), (phases["turn_to"] - phases["turn_from"]).to_numpy()
        shown = _spread(begin, length, length * phases["weight"].to_numpy() / ways, bins) * bins
        tables.append(pd.DataFrame({
            "axes": axes, "bin": np.arange(bins), "turn_from": edges[:-1], "turn_to": edges[1:],
            "start_ns": edges[:-1] * mean, "wire_bytes": sent, "sum_wire_bytes": np.cumsum(sent), "up": shown,
        }))  # fmt: skip
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)


def _spread(begin: Times, length: Times, amount: Times, bins: int) -> Floats:
    """Amounts, each spread evenly over its length, by bin; all lie between 0 and 1."""
    last = begin + length
    first_bin = np.clip(np.floor(begin * bins).astype(np.int64), 0, bins - 1)
    last_bin = np.clip(np.ceil(last * bins).astype(np.int64) - 1, first_bin, bins - 1)
    times = last_bin - first_bin + 1
    own = np.repeat(np.arange(times.size), times)
    at = first_bin[own] + np.arange(own.size) - np.repeat(np.cumsum(times) - times, times)
    # The first bin takes all that lies before its end, the last all from its start: nothing is lost to rounding.
    low = np.where(at == first_bin[own], begin[own], at / bins)
    high = np.where(at == last_bin[own], last[own], (at + 1) / bins)
    part = np.divide(high - low, length[own], out=np.ones(own.size), where=length[own] > 0)
    return np.bincount(at, weights=amount[own] * part, minlength=bins).astype(np.float64)
