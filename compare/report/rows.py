"""One judged program in report form: its collectives, its totals, and the contract rows that it satisfies."""

from collections import Counter
from collections.abc import Iterable, Sequence

from compare.contract.row import ContractRow
from compare.report.grouping import group_by, sum_by
from compare.report.model.codec import copy_fields
from compare.report.model.contract import ServedRow
from compare.report.model.program import CollectiveRow, OriginTotals, PassChange, Totals
from compare.report.plan import served_row
from compare.verdict.verdict import Judgement, Verdict


def collective_row(verdict: Verdict) -> CollectiveRow:
    """A collective and its verdict."""
    row = verdict.collective
    return copy_fields(
        row,
        CollectiveRow,
        changes=tuple(PassChange(by=change.by, what=change.what) for change in row.changes),
        inherent_bytes=verdict.inherent_bytes,
        inflated_bytes=verdict.inflated_bytes,
        induced_bytes=verdict.induced_bytes,
        causes=dict(verdict.causes),
        serves=tuple(verdict.serves),
        loops=tuple(loop.trip_count for loop in row.loops),
        shapes=tuple(f"{operand.dtype}[{','.join(map(str, operand.shape))}]" for operand in row.operands),
        # Nearly always equal on all devices, and then `executions` has it.
        device_executions=row.device_executions if len(set(row.device_executions)) > 1 else None,
        hlo=row.text,
    )


def sum_totals(judgement: Judgement, contract: Sequence[ContractRow]) -> Totals:
    """Sums of the rows' integer bytes."""
    known = [row for row in judgement.verdicts if row.inherent_bytes is not None]
    rows = [
        (row, served)
        for index, (row, served) in enumerate(zip(contract, judgement.served_bytes, strict=True))
        if index not in judgement.uncounted
    ]
    by_network = {"ici": 0, "dcn": 0}
    for row in known:
        by_network[row.collective.network] += row.collective.step_wire_bytes or 0
    return Totals(
        wire_bytes=sum(by_network.values()),
        ici_wire_bytes=by_network["ici"],
        dcn_wire_bytes=by_network["dcn"],
        inherent=sum(row.inherent_bytes or 0 for row in known),
        inflated=sum(row.inflated_bytes or 0 for row in known),
        induced=sum(row.induced_bytes or 0 for row in known),
        missing=sum(row.step_wire_bytes for row, served in rows if not served),
        unserved=sum(row.step_wire_bytes - served for row, served in rows),
        unknown_rows=len(judgement.verdicts) - len(known),
        upper_bound_rows=sum(row.collective.executions_are == "upper-bound" for row in known),
    )


def served_rows(judgement: Judgement, contract: Sequence[ContractRow]) -> tuple[ServedRow, ...]:
    """The contract, with the bytes that this program satisfies; `None` where a collective cannot be counted."""
    return tuple(
        served_row(row, served_bytes=None if index in judgement.uncounted else served)
        for index, (row, served) in enumerate(zip(contract, judgement.served_bytes, strict=True))
    )


def excess_by_place(rows: Iterable[CollectiveRow]) -> dict[tuple[str, str], int]:
    """(scope, axes) -> inflated + induced bytes, where there are any."""
    return sum_by(((row.scope, row.axes), row.excess_bytes) for row in rows if row.excess_bytes)


def origin_totals(rows: Iterable[CollectiveRow]) -> tuple[OriginTotals, ...]:
    """One entry for each origin, the most bytes first.

    Rows of unknown executions count as collectives, but in no sum of bytes.
    """
    entries = [_origin(origin, members) for origin, members in group_by(rows, lambda row: row.origin).items()]
    return tuple(sorted(entries, key=lambda entry: (-entry.step_wire_bytes, entry.origin)))


def _origin(origin: str, rows: Sequence[CollectiveRow]) -> OriginTotals:
    changes = Counter(change for row in rows for change in {f"{change.by}: {change.what}": 1 for change in row.changes})
    return OriginTotals(
        origin=origin,
        collectives=len(rows),
        step_wire_bytes=sum(row.step_wire_bytes or 0 for row in rows),
        inherent_bytes=sum(row.inherent_bytes or 0 for row in rows),
        inflated_bytes=sum(row.inflated_bytes or 0 for row in rows),
        induced_bytes=sum(row.induced_bytes or 0 for row in rows),
        changes=dict(changes),
    )
