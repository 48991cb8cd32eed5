"""Times of each collective (executions, duration, exposed time, bandwidth), and message sizes."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from compare.metrics.network.sent_bytes import SentBytes
from compare.metrics.verdicts import UNKNOWN_VERDICT
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import CollectiveTimes, Messages
from compare.timeline.tracks.numbers import Number, to_number, to_whole
from compare.timeline.tracks.times import sum_volumes
from compare.timeline.tracks.tracks import DeviceTracks

KEYS = ["collective", "scope", "kind", "axes"]

_NONE = {"duration_ns": 0.0, "exposed_share_ns": 0.0, "wait_ns": math.nan}
_UNKNOWN = dict.fromkeys(_NONE, math.nan)


def collective_rows(
    tracks: DeviceTracks,
    cut: pd.DataFrame,
    sent: Mapping[str, SentBytes],
    shares: pd.DataFrame,
    peaks: Mapping[str, float],
) -> tuple[CollectiveTimes, ...]:
    """One row for each collective, by exposed time; means per device and step.

    communication_ns and wait_ns: sums over its executions.  exposed_ns divides time that several expose at once evenly,
    so that all add up to the step's.  Bandwidths are over all its executions: payload ÷ duration, and the bus bandwidth
    of that.  `cut`, `sent`, `shares`, `peaks`: from `clip_to_steps`, `bytes_sent_by`, `verdict_shares` and `peaks`.
    """
    table = sum_volumes(tracks, by=KEYS).to_dict("records")
    times = _times(tracks, cut)
    keys = [tuple(str(entry[key]) for key in KEYS) for entry in table]
    judged = {row["collective"]: row for row in shares.to_dict("records")}
    rates = _rates(tracks)
    rows = []
    for key, entry in zip(keys, table, strict=True):
        (name, scope, kind, axes), row_times = key, times.get(key, _NONE) if tracks.has_devices else _UNKNOWN
        verdict = judged.get(name, {"verdict": UNKNOWN_VERDICT, "cause": ""})
        factor = float(sent[name].bus_factor) if name in sent else np.nan
        rows.append(
            CollectiveTimes(
                collective=name,
                scope=scope,
                kind=kind,
                axes=axes,
                executions=to_number(entry["executions"]),
                payload_bytes=to_number(entry["payload_bytes"]),
                communication_ns=to_number(row_times["duration_ns"]),
                exposed_ns=to_number(row_times["exposed_share_ns"]),
                wait_ns=to_number(row_times["wait_ns"]),
                verdict=verdict["verdict"],
                cause=verdict["cause"] or None,
                algorithm_bytes_per_s=to_whole(rates[name]),
                bus_bytes_per_s=to_whole(rates[name] * factor),
                peak_bytes_per_s=to_whole(peaks.get(name)),
            )
        )
    return tuple(sorted(rows, key=lambda row: (-(row.exposed_ns or 0), -(row.communication_ns or 0), row.collective)))


def messages(tracks: DeviceTracks, rows: Sequence[CollectiveRow]) -> tuple[Messages, ...]:
    """kind, axes, scope, dtype, shapes, payload_bytes (of one message), count (per device and step); largest first.

    After the tables of Xu et al., "Characterizing Communication Patterns in Distributed LLM Inference",
    arXiv:2507.14392.
    `rows` are a report's collectives; dtype and shapes are `None` where they are not among them.
    """
    by_name = {row.name: row for row in rows}
    counts: dict[tuple[str, str, str, str | None, tuple[str, ...], Number], float] = {}
    for entry in sum_volumes(tracks, by=["collective", "kind", "axes", "scope"]).to_dict("records"):
        row = by_name.get(str(entry["collective"]))
        runs = float(entry["executions"])
        if not runs:
            continue
        key = (
            entry["kind"],
            entry["axes"],
            entry["scope"],
            row.dtype if row else None,
            row.shapes if row else (),
            to_number(float(entry["payload_bytes"]) / runs),
        )
        counts[key] = counts.get(key, 0.0) + runs
    entries = [
        Messages(
            kind=kind,
            axes=axes,
            scope=scope,
            dtype=dtype,
            shapes=shapes or None,
            payload_bytes=payload_bytes,
            count=to_number(runs),
        )
        for (kind, axes, scope, dtype, shapes, payload_bytes), runs in counts.items()
    ]
    return tuple(sorted(entries, key=lambda row: (-(row.payload_bytes or 0), row.kind, row.axes, row.scope)))


def _times(tracks: DeviceTracks, cut: pd.DataFrame) -> dict[tuple[str, ...], dict[str, float]]:
    """KEYS -> means of duration_ns, exposed_share_ns, wait_ns (NaN where no execution shows it)."""
    columns = ["duration_ns", "exposed_share_ns", "wait_ns"]
    weighted = cut[columns].mul(cut["weight"], axis=0) / max(tracks.known_device_steps, 1)
    sums = weighted.join(cut[KEYS]).groupby(KEYS, observed=True)[columns].sum(min_count=1).reset_index()
    rows = sums.to_dict("records")
    return {tuple(str(row[key]) for key in KEYS): {name: float(row[name]) for name in columns} for row in rows}


def _rates(tracks: DeviceTracks) -> dict[str, float]:
    """Collective -> bytes of payload per second, over all its executions; NaN where any payload is unknown."""
    names, codes = tracks.keys(["collective"])
    payload, duration = (
        np.bincount(codes, weights=tracks.comms[column], minlength=len(names))
        for column in ("payload_bytes", "duration_ns")
    )
    rates = np.divide(payload * 1e9, duration, out=np.full(len(names), np.nan), where=duration > 0)
    return {name[0]: float(rate) for name, rate in zip(names, rates, strict=True)}
