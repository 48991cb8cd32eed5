"""Traffic intervals: how long the network of an axis rests between two communications, and from one axis to the next.

After Opus (Ding, Ouyang & Singh, "Photonic Rails in ML Datacenters", arXiv:2507.08119), who ask how much time there is
to reconfigure a network between the traffic of one kind of parallelism and the next.
"""

import numpy as np
import pandas as pd

from compare.report.model.timing import Gaps
from compare.timing.arrays import Ints, Times
from compare.timing.tracks.numbers import to_number
from compare.timing.tracks.tracks import DeviceTracks

CURVE = [place / 40 for place in range(41)]
"""Where a distribution is told: from the least, by steps of 2.5 %, to the most."""

_KEYS = ["device", "weight", "step"]


def measure_gaps(tracks: DeviceTracks) -> pd.DataFrame:
    """device, weight, step, from_axes, to_axes, interval_ns: one row for each pair of successive communications.

    Of one axes string: each communication and the next of the same axes, whatever runs between them.  Of two: each
    communication and the next of all, where their axes differ.  The interval is the start of the next less the end of
    the axes' traffic so far: negative where they overlap.  Within one step of one device.
    """
    rows = _rows(tracks)
    step = ["device", "step"]
    own = rows.groupby([*step, "axes"], observed=True, sort=False)
    rows["reached_ns"] = own["stop_ns"].cummax()
    before = own["reached_ns"].shift(1)
    same = rows.assign(from_axes=rows["axes"], interval_ns=rows["start_ns"] - before)[before.notna()]
    previous = rows.groupby(step, sort=False)[["axes", "reached_ns"]].shift(1)
    turned = previous["reached_ns"].notna() & (previous["axes"].astype(str) != rows["axes"].astype(str))
    across = rows.assign(from_axes=previous["axes"], interval_ns=rows["start_ns"] - previous["reached_ns"])[turned]
    found = pd.concat([same, across]).rename(columns={"axes": "to_axes"}).sort_index(kind="stable")
    return found[[*_KEYS, "from_axes", "to_axes", "interval_ns"]].reset_index(drop=True)


def _rows(tracks: DeviceTracks) -> pd.DataFrame:
    """The communications that start in a step, by device and start."""
    tables = []
    for track in tracks.devices if tracks.has_devices else ():
        inside = track.at >= 0
        tables.append(pd.DataFrame({
            "device": track.device,
            "weight": track.weight,
            "step": track.steps[track.at[inside]],
            "axes": tracks.comms["axes"].iloc[track.rows][inside].reset_index(drop=True),
            "start_ns": track.starts[inside],
            "stop_ns": track.stops[inside],
        }))  # fmt: skip
    if not tables:
        return pd.DataFrame({name: pd.Series(dtype=float) for name in (*_KEYS, "axes", "start_ns", "stop_ns")})
    return pd.concat(tables, ignore_index=True)


def quantiles(values: Times, weights: Ints, at: list[float]) -> list[float]:
    """Of values, each there as often as its weight says; between two of them on the line from one to the other."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    places = (upto[-1] - 1) * np.array(at)
    low, high = (
        values[order][np.searchsorted(upto, np.floor(place) + shift, side="right")]
        for shift, place in ((0, places), (0, np.ceil(places)))
    )
    return [float(value) for value in low + (high - low) * (places - np.floor(places))]


def interval_rows(table: pd.DataFrame) -> tuple[Gaps, ...]:
    """from_axes, to_axes, n, median_ns, p95_ns, iqr_ns; each device counts as often as it stands for one.

    quantiles_ns: at CURVE, the distribution for a drawing.
    """
    rows = []
    for (from_axes, to_axes), group in table.groupby(["from_axes", "to_axes"], observed=True):
        weights = group["weight"].to_numpy(np.int64)
        values = quantiles(group["interval_ns"].to_numpy(np.float64), weights, [0.25, 0.5, 0.75, 0.95, *CURVE])
        low, median, high, most, *curve = values
        rows.append(Gaps(
            from_axes=str(from_axes), to_axes=str(to_axes), n=int(weights.sum()), median_ns=to_number(median),
            p95_ns=to_number(most), iqr_ns=to_number(high - low),
            quantiles_ns=tuple(to_number(value) for value in curve),
        ))  # fmt: skip
    return tuple(rows)
