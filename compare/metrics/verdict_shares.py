"""How a collective's bytes divide by verdict, for timelines of judged programs."""

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from compare.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS
from compare.report.differences import group_by_cause
from compare.report.model.program import CollectiveRow
from compare.verdict.causes import describe_cause


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
