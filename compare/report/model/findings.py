"""The findings of a report: the headline, differences between arms, controls, attribution."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from compare.report.model.codec import Count, one_of

CHANGES = ("partitioner", "attention", "cache", "loop", "libtpu", "tracer", "style")
"""What a control can change, the smallest change first: where several remove the same bytes, the first is the owner."""

Excess = Annotated[str, one_of("inflated", "induced")]
"""The verdict on bytes beyond the contract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineRow:
    """One program in one line; numbers are `None` where it was not judged."""

    arm: str
    title: str
    cell: str
    partitioner: str | None
    status: str
    error: str | None
    inherent: Count | None
    inflated: Count | None
    induced: Count | None
    common: Count | None
    framework_induced: Count | None
    missing: Count | None
    wire_bytes: Count | None
    ratio: float | None
    """Wire bytes ÷ those of the contract; `None` also where the contract requires none."""
    qualifier: str
    """`at least`, `at most` or `about`, where rows cannot be counted exactly; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Bytes of one arm with the same scope, axes, kind, verdict and cause, compared with the other arms'."""

    arm: str
    scope: str
    axes: str
    kind: str
    verdict: Excess
    cause: str
    bytes: Count
    excess_bytes: int
    """`bytes` less the most that another arm has."""
    others: Mapping[str, Count]
    """Arm -> its bytes of the same."""
    executions: Count
    sentence: str
    """What the cause means."""
    remedy: str
    source_line: str | None
    names: tuple[str, ...]
    """The collectives."""
    serves: tuple[Count, ...]
    controls: Mapping[str, Count]
    """Cell -> bytes of this scope, axes and verdict there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPhase:
    """How a control changes the inflated and induced bytes of one phase; `None` where one program is not counted."""

    status: str
    error: str | None
    default_bytes: Count | None
    control_bytes: Count | None
    removed_bytes: Count | None
    added_bytes: Count | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The default program with one thing changed."""

    arm: str
    cell: str
    changes: tuple[Annotated[str, one_of(*CHANGES)], ...]
    """In what it differs."""
    phases: Mapping[str, ControlPhase]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionerPair:
    """The frameworks compared under one partitioner."""

    partitioner: str
    cells: Mapping[str, str]
    """Arm -> cell."""
    chosen: bool
    """Whether the totals compare this pair."""
    common: Count | None
    framework_induced: Mapping[str, Count | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlEffect:
    """How many bytes of a group one control leaves and removes."""

    changes: tuple[str, ...]
    left_bytes: Count
    removed_bytes: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """One group of bytes of an arm's default program, and which controls remove it."""

    arm: str
    scope: str
    axes: str
    kind: str
    verdict: Excess
    cause: str
    bytes: Count
    origins: Mapping[str, Count]
    """Origin -> bytes."""
    controls: Mapping[str, ControlEffect]
    removed_by: tuple[str, ...]
    reduced_by: tuple[str, ...]
    owner: Annotated[str, one_of(*CHANGES, "form", "compiler", "open")]
    """`open` where nothing shows it."""
    evidence: str
    """The cell or pass that shows it; empty where none does."""
    source_line: str | None
