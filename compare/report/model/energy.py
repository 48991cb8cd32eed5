"""The modelled energy of a report: joules and watts of the full mesh, one step, with their ranges.  docs/energy.md.

`low_…` and `high_…` have every coefficient at the end of its range.  Nothing here is measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from compare.report.model.codec import OPTIONAL
from compare.report.model.timing import Side
from meshes.devices.chip import Figure

Joules = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyModel:
    """The coefficients of a report's energies."""

    name: str
    """The TPU generation, or the name of the user's own."""
    calibrated_on: str
    """Empty: not calibrated."""
    coefficients: Mapping[str, Figure]
    """By component: `matrix`, `vector`, `memory`, `ici`, `dcn`, `static`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnergy:
    """The energy of one step of a program on the full mesh."""

    step_j: float
    low_j: float
    high_j: float
    by_component_j: Joules
    """Adds up to `step_j`."""
    low_by_component_j: Joules
    high_by_component_j: Joules
    by_verdict_j: Joules
    """`inherent`, `inflated` and `induced` communication, and the `rest`; adds up to `step_j`."""
    low_by_verdict_j: Joules
    high_by_verdict_j: Joules
    chips: float
    tokens: int
    """That a step reads (prefill) or writes (decode)."""
    per_token_j: float
    tokens_per_j: float
    mean_w: float
    low_mean_w: float
    high_mean_w: float
    peak_w: float
    """The largest of `power_w` before it was shortened."""
    low_peak_w: float
    high_peak_w: float
    window_ns: float
    """Of each of `power_w`, from the step's start."""
    power_w: tuple[float, ...]
    """Mean power of equal windows."""
    time_by_component_ns: Mapping[str, float]
    """`compute` (by its FLOPs), `memory` (compute that its bytes hold up), `network` (exposed communication) and
    `idle`: mean over devices; adds up to the step."""
    amounts: Mapping[str, Mapping[str, float]]
    """Verdict -> what is counted: the work of docs/metrics.md, section 14, and `chip_s`, seconds × chips."""

    @property
    def has_peak(self) -> bool:
        """Whether there are windows to be the largest of: a step below 2 ms is one, whose power is the mean."""
        return len(self.power_w) > 1

    @property
    def avoidable_j(self) -> float:
        """For communication that the plan does not need."""
        return self.by_verdict_j["inflated"] + self.by_verdict_j["induced"]

    @property
    def avoidable_span_j(self) -> tuple[float, float]:
        """The least and the most of it."""
        low, high = self.low_by_verdict_j, self.high_by_verdict_j
        return low["inflated"] + low["induced"], high["inflated"] + high["induced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyDifference:
    """Two programs' steps, with the same coefficients on both sides: right less left."""

    left: Side
    right: Side
    left_j: float
    right_j: float
    difference_j: float
    low_j: float
    high_j: float
    by_component_j: Joules
    """Adds up to `difference_j`, as the next does."""
    by_verdict_j: Joules
    ratio: float | None
    """right ÷ left."""
    low_ratio: float | None
    """Over the ranges of the coefficients, with times taken as exact."""
    high_ratio: float | None
    time_error: float | None = field(default=None, metadata=OPTIONAL)
    """How far each step's time may be off, as a fraction of it, in the next two."""
    low_ratio_with_times: float | None = field(default=None, metadata=OPTIONAL)
    high_ratio_with_times: float | None = field(default=None, metadata=OPTIONAL)
