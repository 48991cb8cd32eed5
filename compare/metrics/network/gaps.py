"""Traffic gaps: how long the network of an axis is idle between two communications, and from one axis to the next.

After Opus (Ding, Ouyang & Singh, "Photonic Rails in ML Datacenters", arXiv:2507.08119), which measures the time left
to reconfigure a network between the traffic of one kind of parallelism and the next.
"""

import numpy as np
import pandas as pd

from compare.report.model.timing import Gaps
from compare.timeline.arrays import Ints, Times
from compare.timeline.tracks.numbers import to_number
from compare.timeline.tracks.tracks import DeviceTracks

CURVE = [place / 40 for place in range(41)]
"""The quantiles of a distribution's curve: 0 to 1 in steps of 2.5 %."""

_KEYS = ["device", "weight", "step"]


def measure_gaps(tracks: DeviceTracks) -> pd.DataFrame:
    """device, weight, step, from_axes, to_axes, interval_ns: one row for each pair of successive communications.

    Same axes: each communication and the next one of these axes, whatever runs between them.  Different axes: each
    communication and the next one of any axes, where the axes differ.  The interval is the start of the next less the
    latest end of the first axes' traffic so far: negative where they overlap.  Within one step of one device.
    """
    rows = _rows(tracks)
    step = ["device", "step"]
    by_axes = rows.groupby([*step, "axes"], observed=True, sort=False)
    rows["reached_ns"] = by_axes["stop_ns"].cummax()
    previous_end = by_axes["reached_ns"].shift(1)
    same_axes = rows.assign(from_axes=rows["axes"], interval_ns=rows["start_ns"] - previous_end)[previous_end.notna()]
    previous = rows.groupby(step, sort=False)[["axes", "reached_ns"]].shift(1)
    turned = previous["reached_ns"].notna() & (previous["axes"].astype(str) != rows["axes"].astype(str))
    across = rows.assign(from_axes=previous["axes"], interval_ns=rows["start_ns"] - previous["reached_ns"])[turned]
    gaps = pd.concat([same_axes, across]).rename(columns={"axes": "to_axes"}).sort_index(kind="stable")
    return gaps[[*_KEYS, "from_axes", "to_axes", "interval_ns"]].reset_index(drop=True)


def _rows(tracks: DeviceTracks) -> pd.DataFrame:
    """The communications that start in a step, by device and start."""
    tables = []
    for track in tracks.devices if tracks.has_devices else ():
        inside = track.step_index >= 0
        tables.append(
            pd.DataFrame(
                {
                    "device": track.device,
                    "weight": track.weight,
                    "step": track.steps[track.step_index[inside]],
                    "axes": tracks.comms["axes"].iloc[track.rows][inside].reset_index(drop=True),
                    "start_ns": track.starts[inside],
                    "stop_ns": track.stops[inside],
                }
            )
        )
    if not tables:
        return pd.DataFrame({name: pd.Series(dtype=float) for name in (*_KEYS, "axes", "start_ns", "stop_ns")})
    return pd.concat(tables, ignore_index=True)


def quantiles(values: Times, weights: Ints, fractions: list[float]) -> list[float]:
    """Weighted quantiles, with linear interpolation; each value counts as often as its weight."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    positions = (cumulative[-1] - 1) * np.array(fractions)
    low, high = (
        values[order][np.searchsorted(cumulative, np.floor(position) + shift, side="right")]
        for shift, position in ((0, positions), (0, np.ceil(positions)))
    )
    return [float(value) for value in low + (high - low) * (positions - np.floor(positions))]


def interval_rows(table: pd.DataFrame) -> tuple[Gaps, ...]:
    """from_axes, to_axes, n, median_ns, p95_ns, iqr_ns; each device counts as often as it represents one.

    quantiles_ns: the distribution at CURVE, for figures.
    """
    rows = []
    for (from_axes, to_axes), group in table.groupby(["from_axes", "to_axes"], observed=True):
        weights = group["weight"].to_numpy(np.int64)
        values = quantiles(group["interval_ns"].to_numpy(np.float64), weights, [0.25, 0.5, 0.75, 0.95, *CURVE])
        low, median, high, p95, *curve = values
        rows.append(
            Gaps(
                from_axes=str(from_axes),
                to_axes=str(to_axes),
                n=int(weights.sum()),
                median_ns=to_number(median),
                p95_ns=to_number(p95),
                iqr_ns=to_number(high - low),
                quantiles_ns=tuple(to_number(value) for value in curve),
            )
        )
    return tuple(rows)
