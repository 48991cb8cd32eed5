"""The findings of a report: the headline, differences between arms, controls, attribution."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineRow:
    """One program in one line; numbers are `None` where it was not judged."""

    arm: str
    title: str
    cell: str
    partitioner: str | None
    status: str
    error: str | None
    inherent: int | None
    inflated: int | None
    induced: int | None
    common: int | None
    framework_induced: int | None
    missing: int | None
    wire_bytes: int | None
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
    verdict: str
    """`inflated` or `induced`."""
    cause: str
    bytes: int
    excess_bytes: int
    """`bytes` less the most that another arm has."""
    others: Mapping[str, int]
    """Arm -> its bytes of the same."""
    executions: int
    sentence: str
    """What the cause means."""
    remedy: str
    source_line: str | None
    names: tuple[str, ...]
    """The collectives."""
    serves: tuple[int, ...]
    controls: Mapping[str, int]
    """Cell -> bytes of this scope, axes and verdict there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPhase:
    """How a control changes the inflated and induced bytes of one phase; `None` where one program is not counted."""

    status: str
    error: str | None
    default_bytes: int | None
    control_bytes: int | None
    removed_bytes: int | None
    added_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The default program with one thing changed."""

    arm: str
    cell: str
    changes: tuple[str, ...]
    """Those of `partitioner attention cache loop libtpu tracer style` in which it differs."""
    phases: Mapping[str, ControlPhase]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionerPair:
    """The frameworks compared under one partitioner."""

    partitioner: str
    cells: Mapping[str, str]
    """Arm -> cell."""
    chosen: bool
    """Whether the totals compare this pair."""
    common: int | None
    framework_induced: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlEffect:
    """How many bytes of a group one control leaves and removes."""

    changes: tuple[str, ...]
    left_bytes: int
    removed_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """One group of bytes of an arm's default program, and which controls remove it."""

    arm: str
    scope: str
    axes: str
    kind: str
    verdict: str
    cause: str
    bytes: int
    origins: Mapping[str, int]
    """Origin -> bytes."""
    controls: Mapping[str, ControlEffect]
    removed_by: tuple[str, ...]
    reduced_by: tuple[str, ...]
    owner: str
    """`partitioner attention cache loop libtpu tracer style form compiler`, or `open` where nothing shows it."""
    evidence: str
    """The cell or pass that shows it; empty where none does."""
    source_line: str | None
