"""Each collective of a program by its time: how often, how long, how much exposed, how fast."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from compare.timing.metrics.network.sent_bytes import Sends
from compare.timing.metrics.verdicts import UNKNOWN_VERDICT
from compare.timing.tracks.numbers import number, whole
from compare.timing.tracks.times import VOLUMES, volumes
from compare.timing.tracks.tracks import Lanes

KEYS = ["collective", "scope", "kind", "axes"]

_NONE = {"duration_ns": 0.0, "alone_ns": 0.0, "wait_ns": math.nan}
_UNKNOWN = dict.fromkeys(_NONE, math.nan)


def collective_rows(
    lanes: Lanes, cut: pd.DataFrame, found: Mapping[str, Sends], shares: pd.DataFrame, peaks: Mapping[str, float]
) -> list[dict[str, Any]]:
    """One row for each collective, by exposed time; of one device and step, as means.

    communication_ns and wait_ns: sums over its executions.  exposed_ns divides what several expose at once evenly, so
    that all add up to the step's.  Bandwidths are of all its executions together: payload ÷ duration, and the bus
    bandwidth of that.  `cut`, `found`, `shares`, `peaks`: what `pieces`, `sends`, `shares` and `peaks` give.
    """
    table = volumes(lanes, by=KEYS).to_dict("records")
    times = _times(lanes, cut)
    keys = [tuple(str(entry[key]) for key in KEYS) for entry in table]
    judged = {row["collective"]: row for row in shares.to_dict("records")}
    rates = _rates(lanes)
    rows = []
    for key, entry in zip(keys, table, strict=True):
        name, own = key[0], times.get(key, _NONE) if lanes.told else _UNKNOWN
        verdict = judged.get(name, {"verdict": UNKNOWN_VERDICT, "cause": ""})
        factor = float(found[name].bus_factor) if name in found else np.nan
        rows.append({
            **dict(zip(KEYS, key, strict=True)),
            **{column: number(entry[column]) for column in VOLUMES},
            "communication_ns": number(own["duration_ns"]),
            "exposed_ns": number(own["alone_ns"]),
            "wait_ns": number(own["wait_ns"]),
            "verdict": verdict["verdict"],
            "cause": verdict["cause"] or None,
            "algorithm_bytes_per_s": whole(rates[name]),
            "bus_bytes_per_s": whole(rates[name] * factor),
            "peak_bytes_per_s": whole(peaks.get(name)),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-(row["exposed_ns"] or 0), -(row["communication_ns"] or 0), row["collective"]))


def _times(lanes: Lanes, cut: pd.DataFrame) -> dict[tuple[str, ...], dict[str, float]]:
    """KEYS -> means of duration_ns, alone_ns, wait_ns (NaN where no execution shows it)."""
    columns = ["duration_ns", "alone_ns", "wait_ns"]
    weighted = cut[columns].mul(cut["weight"], axis=0) / max(lanes.known_ways, 1)
    sums = weighted.join(cut[KEYS]).groupby(KEYS, observed=True)[columns].sum(min_count=1).reset_index()
    rows = sums.to_dict("records")
    return {tuple(str(row[key]) for key in KEYS): {name: float(row[name]) for name in columns} for row in rows}


def _rates(lanes: Lanes) -> dict[str, float]:
    """Collective -> bytes of payload per second, over all its executions; NaN where any payload is unknown."""
    names, codes = lanes.keys(["collective"])
    payload, duration = (
        np.bincount(codes, weights=lanes.talks[column], minlength=len(names))
        for column in ("payload_bytes", "duration_ns")
    )
    rates = np.divide(payload * 1e9, duration, out=np.full(len(names), np.nan), where=duration > 0)
    return {name[0]: float(rate) for name, rate in zip(names, rates, strict=True)}
