"""The report of one run: `report.json`, which the tables, the page and the terminal are drawn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from compare.report.model.codec import JsonObject, decode, encode
from compare.report.model.contract import ServedRow
from compare.report.model.findings import Attribution, Control, Difference, HeadlineRow, PartitionerPair
from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import ArmPrograms
from compare.report.model.timing import TimeDifference
from meshes.case import Case

SCHEMA = 1
"""Raised when a script that reads the report would have to change; new fields do not raise it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmInfo:
    """One arm of a run."""

    title: str
    status: str
    """`ok`, or that of the first of its programs that failed."""
    error: str | None
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """Prefill or decode: the contract, the programs of each arm, and what they differ in."""

    inherent: tuple[ServedRow, ...]
    """The contract; `served_bytes` is the least that any arm's default program serves of a row."""
    inherent_total: int
    notes: tuple[str, ...] = ()
    compared_cells: Mapping[str, str]
    """Arm -> the cell that was compared with the other arms."""
    arms: Mapping[str, ArmPrograms]
    differences: tuple[Difference, ...]
    """The largest excess first."""
    pairs: tuple[PartitionerPair, ...] = ()
    attribution: tuple[Attribution, ...] = ()
    headline: tuple[HeadlineRow, ...]
    time_differences: Mapping[str, TimeDifference] = field(default_factory=dict)
    """`modelled`, and the cell of each pair that was measured alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What each arm's compiled programs move in one step, and what the plan needs."""

    schema: int
    sentence: str
    case: Case
    mesh: DeviceMesh
    arms: Mapping[str, ArmInfo]
    controls: tuple[Control, ...] = ()
    phases: Mapping[str, PhaseReport]

    def to_json(self) -> JsonObject:
        """As `report.json` has it."""
        return encode(self)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """A report of this version or an earlier one; raises `ReportError`, one line, where it is none."""
        return decode(cls, value)
