"""The modelled energy of a report: joules and watts of the full mesh, one step, with their ranges.  docs/energy.md.

`low_…` and `high_…` have every coefficient at the end of its range.  Nothing here is measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from compare.report.model.codec import OPTIONAL, Count, one_of
from compare.report.model.timing import Side
from meshes.devices.chip import Figure

Amount = Annotated[float, ("minimum", 0)]
Component = Annotated[str, one_of("matrix", "vector", "memory", "ici", "dcn", "static")]
Verdict = Annotated[str, one_of("inherent", "inflated", "induced", "rest")]
Counted = Annotated[str, one_of("matrix_flops", "vector_ops", "memory_bytes", "ici_byte_hops", "dcn_bytes", "chip_s")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyModel:
    """The coefficients of a report's energies."""

    name: str
    """The TPU generation, or the name in the user's chip file."""
    calibrated_on: str
    """Empty: not calibrated."""
    coefficients: Mapping[Component, Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnergy:
    """The energy of one step of a program on the full mesh."""

    step_j: Amount
    low_j: Amount
    high_j: Amount
    by_component_j: Mapping[Component, float]
    """Adds up to `step_j`."""
    low_by_component_j: Mapping[Component, float]
    high_by_component_j: Mapping[Component, float]
    by_verdict_j: Mapping[Verdict, float]
    """`rest` is all but communication; adds up to `step_j`."""
    low_by_verdict_j: Mapping[Verdict, float]
    high_by_verdict_j: Mapping[Verdict, float]
    chips: Amount
    tokens: Count
    """Tokens that a step reads (prefill) or writes (decode)."""
    per_token_j: Amount
    tokens_per_j: Amount
    mean_w: Amount
    low_mean_w: Amount
    high_mean_w: Amount
    peak_w: Amount
    """The largest of `power_w` before it was shortened."""
    low_peak_w: Amount
    high_peak_w: Amount
    window_ns: Amount
    """Of each of `power_w`, from the step's start."""
    power_w: tuple[Amount, ...]
    """Mean power of equal windows."""
    time_by_component_ns: Mapping[Annotated[str, one_of("compute", "memory", "network", "idle")], Amount]
    """`compute` (by its FLOPs), `memory` (compute that its bytes hold up), `network` (exposed communication) and
    `idle`: mean over devices; adds up to the step."""
    amounts: Mapping[Verdict, Mapping[Counted, Amount]]
    """What is counted: the work of docs/metrics.md, section 14, and `chip_s`, seconds × chips."""

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
    left_j: Amount
    right_j: Amount
    difference_j: float
    low_j: float
    high_j: float
    by_component_j: Mapping[Component, float]
    """Adds up to `difference_j`, as the next does."""
    by_verdict_j: Mapping[Verdict, float]
    ratio: float | None
    """right ÷ left."""
    low_ratio: float | None
    """Over the ranges of the coefficients, with times taken as exact."""
    high_ratio: float | None
    time_error: Amount | None = field(default=None, metadata=OPTIONAL)
    """How far each step's time may be off, as a fraction of it, in the next two."""
    low_ratio_with_times: float | None = field(default=None, metadata=OPTIONAL)
    high_ratio_with_times: float | None = field(default=None, metadata=OPTIONAL)
