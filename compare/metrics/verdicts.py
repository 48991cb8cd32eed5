"""Communication, exposed time and waiting by verdict.

Verdicts are on bytes (docs/definitions.md, section 4).  A collective's time is divided in proportion to its bytes.
"""

import numpy as np
import pandas as pd

from compare.report.model.timing import VerdictTimes
from compare.timeline.arrays import Floats
from compare.timeline.tracks.numbers import round_to_total, to_number
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks

VERDICTS = ("inherent", "inflated", "induced")
UNKNOWN_VERDICT = "unknown"
"""Verdict of events without a collective, or with one of unknown executions."""

_TIMES = {"communication_ns": "communication_share_ns", "exposed_ns": "exposed_share_ns", "wait_ns": "wait_share_ns"}
"""Time -> the column of `clip_to_steps` that adds up to it."""


def verdict_fractions(collectives: "pd.Series[str]", shares: pd.DataFrame) -> Floats:
    """(rows, VERDICTS and unknown): the fractions of each row's time.  `shares`: from `verdict_shares.py`."""
    table = shares.drop_duplicates("collective").set_index("collective")[list(VERDICTS)]
    fractions = table.reindex(collectives).to_numpy(np.float64)
    unknown = np.isnan(fractions).any(axis=1)
    return np.column_stack((np.where(unknown[:, None], 0.0, fractions), unknown))


def verdict_times(cut: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """device, step, weight, axes, scope, verdict -> communication_ns, exposed_ns, wait_ns.

    `cut`, `shares`: from `clip_to_steps` and `verdict_shares`.  The sum over verdicts, axes and scopes is the device's
    time in that step.
    """
    fractions = verdict_fractions(cut["collective"].astype(str), shares)
    keys = ["device", "step", "weight", "axes", "scope"]
    frames = [
        cut[keys].assign(
            verdict=verdict, **{name: cut[column] * fractions[:, index] for name, column in _TIMES.items()}
        )
        for index, verdict in enumerate((*VERDICTS, UNKNOWN_VERDICT))
    ]
    sums = pd.concat(frames, ignore_index=True).groupby([*keys, "verdict"], observed=True, sort=True)
    return sums[list(_TIMES)].sum(min_count=1).reset_index()


def by_verdict(tracks: DeviceTracks, cut: pd.DataFrame, shares: pd.DataFrame) -> dict[str, VerdictTimes]:
    """Per verdict the three times, means per device and step; each adds up to that of `per_step`."""
    total = measure_times(tracks).mean_rows()[()]
    table = verdict_times(cut, shares)
    columns = {}
    for name in _TIMES:
        sums = (table[name] * table["weight"]).groupby(table["verdict"]).sum() / max(tracks.known_device_steps, 1)
        values = {verdict: float(sums.get(verdict, 0.0)) for verdict in (*VERDICTS, UNKNOWN_VERDICT)}
        columns[name] = round_to_total(values, total=to_number(total[name]))
    return {
        verdict: VerdictTimes(**{name: columns[name][verdict] for name in _TIMES})
        for verdict in (*VERDICTS, UNKNOWN_VERDICT)
    }
