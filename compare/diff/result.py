"""The types of the result of `compare.diff`.  Of two values in a list the first is of `a`."""

from collections.abc import Mapping
from typing import TypedDict, final

Value = str | int | list[list[int]] | None
"""The value of a column of a collective."""


class KindTotals(TypedDict):
    """The collectives of one kind and axes."""

    kind: str
    axes: str
    collectives: int
    step_wire_bytes: int


class ProgramSide(TypedDict):
    """One of two programs."""

    name: str
    compiled: str
    """Target and compiler, if it was compiled here; empty if it came compiled."""
    collectives: int
    step_wire_bytes: int
    unknown_rows: int
    upper_bound_rows: int
    by_kind: list[KindTotals]


class Alike(TypedDict):
    """What is the same in both."""

    collectives: int
    step_wire_bytes: int
    in_another_order: int
    of_other_neighbours: list[list[str]]
    """Two scopes each."""


class EquivalentRow(TypedDict):
    """One collective of an equivalent."""

    name: str
    kind: str
    axes: str
    where: str
    payload_bytes: int
    executions: int | None


class EquivalentEntry(TypedDict):
    """The same communication in another form."""

    how: str
    delta_bytes: int
    delta_dcn_bytes: int
    a: list[EquivalentRow]
    b: list[EquivalentRow]


class DifferenceEntry(TypedDict):
    """One line of a diff."""

    what: str
    """`only in a`, `only in b` or `changed`."""
    kind: str
    axes: str
    network: str
    scope: str
    dtype: str
    payload_bytes: int
    executions: int | None
    executions_are: str
    where: str
    op_name: str
    other_op_names: list[str]
    inferred: list[str]
    """Columns whose value is that of the nearest instruction."""
    times: int
    step_wire_bytes: list[int]
    delta_bytes: int | None
    changes: dict[str, list[Value]]
    """Column -> its two values."""
    a: list[str]
    b: list[str]
    source_line: str | None
    hlo: dict[str, str]


class DiffValues(TypedDict):
    """What two programs have in common, and where they differ."""

    same: bool
    alike: Alike
    equivalents: list[EquivalentEntry]
    differences: list[DifferenceEntry]


@final
class ProgramsDiff(DiffValues):
    """What `compare.diff A B --json` prints of two programs."""

    schema: int
    axes: Mapping[str, int]
    a: ProgramSide
    b: ProgramSide


class CellDiff(TypedDict):
    """One program of two runs."""

    arm: str
    title: str
    phase: str
    cell: str
    status: list[str]
    error: list[str | None]
    partitioner: list[str | None]
    totals: dict[str, list[int | None]]
    same: bool
    alike: Alike | None
    """None where one of the two was not compiled, like the two below."""
    equivalents: list[EquivalentEntry] | None
    differences: list[DifferenceEntry] | None


class RunSide(TypedDict):
    """One of two runs."""

    run: str
    case: str


@final
class RunsDiff(TypedDict):
    """What `compare.diff RUN_A RUN_B --json` prints."""

    schema: int
    a: RunSide
    b: RunSide
    same: bool
    case_changes: dict[str, list[object]]
    versions: dict[str, list[str | None]]
    programs: list[CellDiff]
    only_in_a: list[list[str]]
    """Arm, phase, cell."""
    only_in_b: list[list[str]]
