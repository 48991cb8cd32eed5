"""Rows that are one collective in several instructions, as one line: hops of a windowed einsum, unrolled layers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compare.hlo.collective import Collective
from compare.hlo.scope_key import path_of
from compare.render.units import exact_text, times_text

FEWEST = 3
"""Rows that are folded; two are read as fast as one line that stands for them."""
FOLDED = "Rows alike in scope, path (numbers in it are *), source line, kind and axes are one line"

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class FoldedRow:
    """At least one row; the first stands for all."""

    rows: tuple[Collective, ...]

    @property
    def first(self) -> Collective:
        return self.rows[0]

    @property
    def is_folded(self) -> bool:
        return len(self.rows) > 1

    @property
    def path(self) -> str:
        """The framework's path; of several rows with `*` for the numbers that tell their layers apart."""
        paths = {path_of(row) for row in self.rows}
        return paths.pop() if len(paths) == 1 else _NUMBER.sub("*", path_of(self.first))

    @property
    def name(self) -> str:
        """`all-gather.7`, of several with their number: `all-gather.7 and 4 more`."""
        return f"{self.first.name} and {len(self.rows) - 1:,} more" if self.is_folded else self.first.name

    @property
    def times(self) -> str:
        """How often a step executes it; of several rows each: `5 rows, 12 × each`."""
        times = times_text(self.first.executions, self.first.executions_are)
        return f"{len(self.rows):,} rows, {times} each" if self.is_folded else times

    @property
    def payload(self) -> str:
        """Of one execution of one of them, from the least to the most."""
        return _range([row.payload_bytes for row in self.rows])

    @property
    def wire(self) -> str:
        """Of one execution of one of them, from the least to the most."""
        return _range([row.wire_bytes for row in self.rows])

    @property
    def step_wire_bytes(self) -> int | None:
        """Of all of them, in a step; None where the executions are unknown."""
        amounts = [row.step_wire_bytes for row in self.rows if row.step_wire_bytes is not None]
        return sum(amounts) if len(amounts) == len(self.rows) else None


def fold_rows(rows: Sequence[Collective], *, unfolded: bool = False) -> list[FoldedRow]:
    """The rows in their order, each group of `FEWEST` and more at the place of its first.  No row is left out.

    unfolded: each row by itself.
    """
    groups: dict[tuple[object, ...], list[Collective]] = {}
    for index, row in enumerate(rows):
        groups.setdefault((index,) if unfolded else _key(row), []).append(row)
    folded = {id(group[0]): group for group in groups.values() if len(group) >= FEWEST}
    inside = {id(row) for group in folded.values() for row in group[1:]}
    return [FoldedRow(tuple(folded.get(id(row), [row]))) for row in rows if id(row) not in inside]


def _key(row: Collective) -> tuple[object, ...]:
    """What rows of one line share.  Not their bytes: pieces of one collective may differ, and the line shows both ends.

    A row with neither path nor source line shares nothing that is known.
    """
    if not row.op_name and not row.source_line:
        return (id(row),)
    return (
        row.scope,
        _NUMBER.sub("*", path_of(row)),
        row.source_line,
        row.caller,
        row.kind,
        row.axes,
        row.network,
        row.dtype,
        row.form,
        row.executions,
        row.executions_are,
        row.inferred,
    )


def _range(amounts: Sequence[int]) -> str:
    least, most = min(amounts), max(amounts)
    return exact_text(most) if least == most else f"{least:,}–{exact_text(most)}"
