"""The differences between arms, largest first: which bytes the plan does not require, where, why, what removes them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compare.report.grouping import group_by, sum_by
from compare.report.model.findings import Difference
from compare.report.model.program import CollectiveRow
from compare.verdict.causes import INDUCED, describe_cause

_INDUCED_NAMES = {cause.name for cause in INDUCED} - {"other"}


class GroupKey(NamedTuple):
    """The key under which bytes are counted together."""

    scope: str
    axes: str
    kind: str
    verdict: str
    """`inflated` or `induced`."""
    cause: str


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Bytes of one scope, axes, kind, verdict and cause, and the collectives that have them."""

    bytes: int
    executions: int
    rows: tuple[CollectiveRow, ...]

    @property
    def source_line(self) -> str | None:
        """The first that is known."""
        return next((row.source_line for row in self.rows if row.source_line), None)

    def by_origin(self, cause: str) -> dict[str, int]:
        """Origin -> bytes of this cause."""
        return sum_by((row.origin, row.causes.get(cause, 0)) for row in self.rows)


def group_by_cause(rows: Iterable[CollectiveRow]) -> dict[GroupKey, CauseGroup]:
    """The inflated and induced bytes of these rows, in groups."""
    parts = [
        (GroupKey(row.scope, row.axes, row.kind, verdict, cause), amount, row)
        for row in rows
        for verdict, cause, amount in _parts(row)
    ]
    return {
        key: CauseGroup(
            sum(amount for _, amount, _ in members),
            sum(row.executions or 0 for *_, row in members),
            tuple(row for *_, row in members),
        )
        for key, members in group_by(parts, lambda part: part[0]).items()
    }


def _parts(row: CollectiveRow) -> Iterator[tuple[str, str, int]]:
    """(verdict, cause, bytes) of one row; `other` is induced if the named causes leave induced bytes over."""
    induced = row.induced_bytes or 0
    for cause, amount in row.causes.items():
        if cause in _INDUCED_NAMES:
            induced -= amount
            yield "induced", cause, amount
        elif cause == "other" and induced:
            yield "induced", cause, amount
        else:
            yield "inflated", cause, amount


def find_differences(
    arms: Mapping[str, Sequence[CollectiveRow]],
    *,
    controls: Mapping[str, Mapping[str, Sequence[CollectiveRow]]],
    axes: Collection[str] | None = None,
) -> tuple[Difference, ...]:
    """One entry for each group of any arm, the largest excess over the other arms first.

    `arms` are the rows of the compared programs; `controls` those of each arm's other cells, by cell: an entry's
    `controls` are the bytes of the same scope, axes and verdict there.  `axes` are those that the mesh splits; `None`:
    unknown.
    """
    tables = {arm: group_by_cause(rows) for arm, rows in arms.items()}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    entries = [
        _difference(key, arm, tables, controls.get(arm, {}), axes)
        for key in keys
        for arm in tables
        if key in tables[arm]
    ]
    return tuple(sorted(entries, key=lambda entry: (-entry.excess_bytes, -entry.bytes)))


def _difference(
    key: GroupKey,
    arm: str,
    tables: Mapping[str, Mapping[GroupKey, CauseGroup]],
    controls: Mapping[str, Sequence[CollectiveRow]],
    axes: Collection[str] | None,
) -> Difference:
    group = tables[arm][key]
    others = {name: table[key].bytes if key in table else 0 for name, table in tables.items() if name != arm}
    sentence, remedy = describe_cause(key.cause, induced=key.verdict == "induced", axes=axes)
    return Difference(
        arm=arm,
        **key._asdict(),
        bytes=group.bytes,
        excess_bytes=group.bytes - max(others.values(), default=0),
        others=others,
        executions=group.executions,
        sentence=sentence,
        remedy=remedy,
        source_line=group.source_line,
        names=tuple(row.name for row in group.rows),
        serves=tuple(sorted({number for row in group.rows for number in row.serves})),
        controls={cell: _left(rows, key) for cell, rows in controls.items()},
    )


def _left(rows: Iterable[CollectiveRow], key: GroupKey) -> int:
    """Bytes of the same scope, axes and verdict in another cell."""
    rows_here = [row for row in rows if (row.scope, row.axes) == (key.scope, key.axes)]
    if key.verdict == "induced":
        return sum(row.induced_bytes or 0 for row in rows_here)
    return sum(row.inflated_bytes or 0 for row in rows_here)
