"""Communication, exposed time and waiting by verdict.

Verdicts are on bytes (docs/definitions.md, section 4).  A collective's time is divided in proportion to its bytes.
"""

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from compare.report.differences import group_by_cause
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import VerdictTimes
from compare.timeline.arrays import Floats
from compare.timeline.tracks.numbers import round_to_total, to_number
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks
from compare.verdict.causes import describe_cause

VERDICTS = ("inherent", "inflated", "induced")
UNKNOWN_VERDICT = "unknown"
"""Verdict of events without a collective, or with one of unknown executions."""

_TIMES = {"communication_ns": "communication_share_ns", "exposed_ns": "exposed_share_ns", "wait_ns": "wait_share_ns"}
"""Time -> the column of `clip_to_steps` that adds up to it."""


def verdict_shares(rows: Iterable[CollectiveRow], *, axes: Collection[str] | None = None) -> pd.DataFrame:
    """From a report's collectives: collective, VERDICTS (fractions of 1, NaN unknown), verdict (the largest).

    cause: the one with the most bytes; reason: its sentence, on a mesh that splits these axes; "" for none.
    """
    entries, unknown = [], dict.fromkeys(VERDICTS, np.nan)
    for row in rows:
        amounts = [
            amount for amount in (row.inherent_bytes, row.inflated_bytes, row.induced_bytes) if amount is not None
        ]
        total = sum(amounts)
        known = total > 0 and len(amounts) == len(VERDICTS)
        causes = {(key.verdict, key.cause): group.bytes for key, group in group_by_cause([row]).items()}
        verdict, cause = max(causes, key=lambda name: causes[name]) if causes else ("", "")
        entries.append(
            {
                "collective": row.name,
                **(dict(zip(VERDICTS, (amount / total for amount in amounts), strict=True)) if known else unknown),
                "verdict": VERDICTS[amounts.index(max(amounts))] if known else UNKNOWN_VERDICT,
                "cause": cause,
                "reason": describe_cause(cause, induced=verdict == "induced", axes=axes).sentence if cause else "",
            }
        )
    return pd.DataFrame(entries, columns=["collective", *VERDICTS, "verdict", "cause", "reason"])


def verdict_fractions(collectives: "pd.Series[str]", shares: pd.DataFrame) -> Floats:
    """(rows, VERDICTS and unknown): the fractions of each row's time.  `shares`: from `verdict_shares`."""
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
    total = measure_times(tracks).means().to_dict("records")[0]
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
