"""The difference of two timelines of one plan: where one communicates longer, and what only one of them runs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from compare.metrics.alignment.align import LEFT, RIGHT, WORDS, find_unmatched
from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.verdicts import UNKNOWN_VERDICT
from compare.report.model.codec import decode, encode
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import Side, TimeDifference, TotalTimeDifference
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.numbers import Number, to_number
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks

JUDGED = ["collective", "verdict", "cause", "reason"]

_BY = ["scope", "axes"]
_COMPARED = ["communication_ns", "exposed_ns", "executions", "payload_bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The comparison of two timelines; differences are right less left."""

    labels: Mapping[str, str]
    """Side -> description of its timeline."""
    total: TotalTimeDifference
    """Per device and step, means."""
    by_scope: pd.DataFrame
    """The same for each scope and axes, with executions and payload_bytes; largest exposed difference first."""
    stretches: pd.DataFrame
    """Communication without a match on the other side, one row for each interval, longest first."""
    excess: pd.DataFrame
    """The same summed by side and collective: means per device and step, and the longest interval."""
    notes: tuple[str, ...]

    def to_report(self, left: Side, right: Side, *, most: int = 50) -> TimeDifference:
        """In report form, with the `most` longest intervals.  left, right: the programs of the timelines."""
        return decode(
            TimeDifference,
            {
                "left": encode(left),
                "right": encode(right),
                "labels": dict(self.labels),
                "total": encode(self.total),
                "by_scope": _plain(self.by_scope),
                "excess": _plain(self.excess),
                "stretches": _plain(self.stretches.head(most)),
                "num_stretches": len(self.stretches),
                "notes": list(self.notes),
            },
        )


def timeline_diff(
    left: Timeline,
    right: Timeline,
    *,
    left_rows: Sequence[CollectiveRow] = (),
    right_rows: Sequence[CollectiveRow] = (),
    axes: Collection[str] | None = None,
) -> Diff:
    """Compare two timelines: the nth step of one with the nth of the other, device by device.

    `left_rows` and `right_rows` are the collectives of each side's report, for verdicts and reasons; `axes` are those
    that the mesh splits, so that reasons name no missing axis.
    """
    sides = {LEFT: DeviceTracks.of(left), RIGHT: DeviceTracks.of(right)}
    unmatched = find_unmatched(sides[LEFT], sides[RIGHT])
    verdicts = {LEFT: verdict_shares(left_rows, axes=axes), RIGHT: verdict_shares(right_rows, axes=axes)}
    stretches = _with_reasons(unmatched.stretches, verdicts)
    notes = [f"{side}: {note}" for side, tracks in sides.items() for note in tracks.notes]
    return Diff(
        labels={LEFT: left.label, RIGHT: right.label},
        total=_total(sides),
        by_scope=_by_scope(sides),
        stretches=stretches.sort_values("communication_ns", ascending=False, kind="stable", ignore_index=True),
        excess=_excess(stretches, unmatched.device_steps),
        notes=(*notes, *unmatched.notes),
    )


def _total(sides: Mapping[str, DeviceTracks]) -> TotalTimeDifference:
    means = {side: measure_times(tracks).mean_rows()[()] for side, tracks in sides.items()}
    fields = dict[str, Number]()
    for name in _COMPARED[:2]:
        values = {side: float(row[name]) for side, row in means.items()}
        fields |= {f"{side}_{name}": to_number(value) for side, value in values.items()}
        fields[f"difference_{name}"] = to_number(values[RIGHT] - values[LEFT])
    return TotalTimeDifference(**fields)


def _by_scope(sides: Mapping[str, DeviceTracks]) -> pd.DataFrame:
    tables = [
        measure_times(tracks, by=_BY).means().set_index(_BY)[_COMPARED].add_prefix(f"{side}_")
        for side, tracks in sides.items()
    ]
    index = tables[0].index.union(tables[1].index)
    # What a side never runs takes 0 ns; what its timeline does not show stays NaN.
    filled = [
        pd.concat([table, pd.DataFrame(0.0, index=index.difference(table.index), columns=table.columns)]).loc[index]
        for table in tables
    ]
    both = pd.concat(filled, axis=1).rename_axis(_BY).reset_index()
    for name in _COMPARED:
        # To the picosecond: anything smaller is rounding error.
        both[f"difference_{name}"] = (both[f"right_{name}"] - both[f"left_{name}"]).round(3)
    order = both["difference_exposed_ns"].abs().sort_values(ascending=False, kind="stable").index
    return both.loc[order].reset_index(drop=True)


def _with_reasons(stretches: pd.DataFrame, verdicts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Adds verdict, cause and reason of each interval's collective, in its own program."""
    tables = [table.drop_duplicates("collective").assign(side=side) for side, table in verdicts.items()]
    both = stretches.merge(pd.concat(tables)[["side", *JUDGED]], on=["side", "collective"], how="left")
    return both.fillna({"verdict": UNKNOWN_VERDICT, "cause": "", "reason": ""})


def _excess(stretches: pd.DataFrame, device_steps: int) -> pd.DataFrame:
    """Intervals summed by collective, the most time first."""
    names = ["side", *WORDS, *JUDGED[1:]]
    means = ["communication_ns", "exposed_ns", "executions"]
    weighted = stretches.assign(
        **{name: stretches[name] * stretches["weight"] / max(device_steps, 1) for name in means}
    )
    groups = weighted.groupby(names, observed=True, sort=False)
    table = groups[means].sum().join(groups.size().rename("stretches"))
    table["longest_ns"] = stretches.groupby(names, observed=True, sort=False)["communication_ns"].max()
    return table.reset_index().sort_values("communication_ns", ascending=False, kind="stable", ignore_index=True)


def _plain(table: pd.DataFrame) -> list[dict[str, object]]:
    return [
        {str(name): to_number(value) if isinstance(value, int | float) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]
