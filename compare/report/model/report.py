"""The report of one run: `report.json`, from which the tables, the page and the terminal are rendered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self

from compare.report.model.codec import OPTIONAL, Count, JsonObject, decode, encode
from compare.report.model.contract import ServedRow
from compare.report.model.energy import EnergyDifference, EnergyModel
from compare.report.model.findings import Attribution, Control, Difference, HeadlineRow, PartitionerPair
from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import ArmPrograms
from compare.report.model.timing import TimeDifference
from meshes.case import Case

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmInfo:
    """One arm of a run."""

    title: str
    status: str
    """`ok`, or the status of the first of its programs that failed."""
    error: str | None
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """Prefill or decode: the contract, the programs of each arm, and their differences."""

    inherent: tuple[ServedRow, ...]
    """The contract; `served_bytes` is the least over the arms' default programs."""
    inherent_total: Count
    notes: tuple[str, ...] = ()
    compared_cells: Mapping[str, str]
    """Arm -> the cell that was compared with the other arms."""
    arms: Mapping[str, ArmPrograms]
    differences: tuple[Difference, ...]
    """Largest excess first."""
    pairs: tuple[PartitionerPair, ...] = ()
    attribution: tuple[Attribution, ...] = ()
    headline: tuple[HeadlineRow, ...]
    time_differences: Mapping[str, TimeDifference] = field(default_factory=dict)
    """By `modelled`, and by the cell of each pair that was measured alike."""
    energy_difference: EnergyDifference | None = field(default=None, metadata=OPTIONAL)
    """The compared programs' modelled steps; `None` unless there are two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What each arm's compiled programs move in one step, and what the plan needs.  Bytes are means over devices."""

    schema: Annotated[int, ("const", SCHEMA)]
    """Raised when scripts that read the report would have to change; new fields do not raise it."""
    sentence: str
    case: Case
    mesh: DeviceMesh
    arms: Mapping[str, ArmInfo]
    controls: tuple[Control, ...] = ()
    energy_model: EnergyModel | None = field(default=None, metadata=OPTIONAL)
    """The coefficients of every energy in the report; `None` where it has none."""
    phases: Mapping[str, PhaseReport]

    def to_json(self) -> JsonObject:
        """The contents of `report.json`."""
        return encode(self)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """A report of this version or an earlier one; raises `ReportError`, one line, where it is not a report."""
        return decode(cls, value)
