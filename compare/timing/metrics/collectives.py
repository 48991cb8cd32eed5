"""Each collective of a program by its time: how often, how long, how much exposed, how fast."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from compare.timing.metrics.lanes import Lanes
from compare.timing.metrics.numbers import Number, number, parts, whole
from compare.timing.metrics.pieces import pieces
from compare.timing.metrics.sends import Sends
from compare.timing.metrics.times import times
from compare.timing.metrics.verdicts import UNKNOWN_VERDICT

KEYS = ["collective", "scope", "kind", "axes"]


def collective_rows(
    lanes: Lanes, found: Mapping[str, Sends], shares: pd.DataFrame, peaks: Mapping[str, float]
) -> list[dict[str, Any]]:
    """One row for each collective, by exposed time; of one device and step, as means.

    exposed_ns divides what several expose at once evenly, so that all add up to the step's; the other times are the
    collective's own.  Bandwidths are of all its executions together: payload ÷ duration, and the bus bandwidth of that.
    `found`, `shares`, `peaks`: what `sends`, `verdicts.shares` and `bandwidth.peaks` give.
    """
    table = times(lanes, by=KEYS).means().to_dict("records")
    exposed = _exposed(lanes, [tuple(str(entry[key]) for key in KEYS) for entry in table])
    judged = {row["collective"]: row for row in shares.to_dict("records")}
    rates = _rates(lanes)
    rows = []
    for entry, alone in zip(table, exposed, strict=True):
        name = str(entry["collective"])
        verdict = judged.get(name, {"verdict": UNKNOWN_VERDICT, "cause": ""})
        rate = rates[name]
        factor = float(found[name].bus_factor) if name in found else None
        rows.append({
            **{key: str(entry[key]) for key in KEYS},
            **{key: number(entry[key]) for key in ("executions", "payload_bytes", "communication_ns")},
            "exposed_ns": alone,
            "wait_ns": number(entry["wait_ns"]),
            "verdict": verdict["verdict"],
            "cause": verdict["cause"] or None,
            "algorithm_bytes_per_s": whole(rate),
            "bus_bytes_per_s": whole(rate * factor) if factor is not None else None,
            "peak_bytes_per_s": whole(peaks.get(name)),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-(row["exposed_ns"] or 0), -(row["communication_ns"] or 0), row["collective"]))


def _rates(lanes: Lanes) -> dict[str, float]:
    """Collective -> bytes of payload per second, over all its executions; NaN where any payload is unknown."""
    names, codes = lanes.keys(["collective"])
    payload, duration = (
        np.bincount(codes, weights=lanes.talks[column], minlength=len(names))
        for column in ("payload_bytes", "duration_ns")
    )
    rates = np.divide(payload * 1e9, duration, out=np.full(len(names), np.nan), where=duration > 0)
    return {name[0]: float(rate) for name, rate in zip(names, rates, strict=True)}


def _exposed(lanes: Lanes, names: list[tuple[str, ...]]) -> list[Number]:
    """The exposed time of each collective, where together they add up to the device's."""
    if not lanes.told:
        return [None] * len(names)
    cut = pieces(lanes)
    ways = sum(lane.weight * lane.steps.size for lane in lanes.lanes)
    total = number(float(times(lanes).means()["exposed_ns"].iloc[0]))
    cut = cut.assign(alone_ns=cut["alone_ns"] * cut["weight"] / ways)
    sums = cut.groupby(KEYS, observed=True)["alone_ns"].sum().reset_index().to_dict("records")
    known = {tuple(str(row[key]) for key in KEYS): float(row["alone_ns"]) for row in sums}
    found = parts({"\n".join(name): known.get(name, 0.0) for name in names}, total=total)
    return [found["\n".join(name)] for name in names]
