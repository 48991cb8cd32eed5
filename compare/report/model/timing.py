"""The times of a report: one program's metrics, and two arms' timelines compared.  docs/metrics.md defines each.

Times are of one device and one step, means over both, unless a field says otherwise; `None` is what does not apply, or
what the timeline does not show.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Number = int | float | None
"""Whole where it is, to the picosecond where not, `None` where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Where the time of a step goes."""

    step_ns: Number
    communication_ns: Number
    exposed_ns: Number
    """Communication behind which nothing is computed; the rest is hidden."""
    hidden_ns: Number
    wait_ns: Number
    compute_ns: Number
    communication_fraction: Number
    overlap: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTimes(Times):
    """The same of a part of the communication, and how much there is of it."""

    executions: Number
    payload_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTimes(Times):
    """The whole step, and its communication by axes and kind: what any profile shows."""

    by_axes: Mapping[str, PartTimes]
    by_kind: Mapping[str, PartTimes]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes(TraceTimes):
    """The same of a program whose scopes are known."""

    by_scope: Mapping[str, PartTimes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStep:
    """One step by itself."""

    step: int
    step_ns: Number
    communication_ns: Number
    exposed_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictTimes:
    """The time of the bytes of one verdict."""

    communication_ns: Number
    exposed_ns: Number
    wait_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTimes:
    """One collective: how often, how long, how fast."""

    collective: str
    scope: str
    kind: str
    axes: str
    executions: Number
    payload_bytes: Number
    communication_ns: Number
    exposed_ns: Number
    wait_ns: Number
    verdict: str
    """That of most of its bytes, or `unknown`."""
    cause: str | None = None
    """That with the most bytes."""
    algorithm_bytes_per_s: int | None = None
    bus_bytes_per_s: int | None = None
    peak_bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The gaps between two communications, from the end of one to the start of the next."""

    from_axes: str
    to_axes: str
    n: int
    median_ns: Number
    p95_ns: Number
    iqr_ns: Number
    quantiles_ns: tuple[Number, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """How much of the step the network of some axes carries anything."""

    duty_cycle: Number
    up_phases: Number
    bytes_per_up_phase: Number
    peak_bytes_per_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Curves over the step: bytes sent, and how much of each bin the network carries anything."""

    bins: int
    wire_bytes: tuple[Number, ...]
    up: tuple[Number, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTraffic:
    """What one device sends to another."""

    device_from: int
    device_to: int
    axes: str
    logical_bytes: Number
    routed_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """One stage of the pipeline."""

    stage: int
    ticks: int
    bubble_ticks: Number
    pipeline_ns: Number
    bubble_ns: Number
    busy_in_bubble_ns: Number
    idle_ns: Number
    bubble_share: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick of the pipeline, from the step's start."""

    tick: int
    start_ns: Number
    duration_ns: Number
    microbatches: tuple[int | None, ...]
    """Of each stage the one that it holds; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePhase:
    """`before`, `fill`, `steady`, `drain` or `after`."""

    phase: str
    start_ns: Number
    duration_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineTimes:
    """The pipeline, and how much of its time stages hold no microbatch."""

    stages: tuple[StageTimes, ...]
    bubble_share: Number
    gpipe_bubble_share: Number
    """What a uniform GPipe pipeline has."""
    ticks: tuple[Tick, ...]
    phases: tuple[PipelinePhase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimes:
    """One device that the timeline shows, and for how many it stands."""

    device: int
    stands_for: int
    step_ns: Number
    communication_ns: Number
    exposed_ns: Number
    hidden_ns: Number
    wait_ns: Number
    compute_ns: Number
    idle_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Imbalance:
    """The largest over devices ÷ the mean, and whose it is."""

    largest_over_mean: Number
    device: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """How late a device comes to its collectives."""

    device: int
    mean_lag_ns: Number
    last_share: Number
    """Of its executions, those to which it alone comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Messages of one kind and shape."""

    kind: str
    axes: str
    scope: str
    dtype: str | None
    shapes: tuple[str, ...] | None
    payload_bytes: Number
    """Of one."""
    count: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """What a timeline says on one page, modelled or measured as `source` says; `compare.trace --json` prints it."""

    source: str
    label: str
    devices: int
    steps: int
    unjoined_events: int
    per_step: TraceTimes
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing(TraceSummary):
    """All metrics of one program's timeline."""

    per_step: StepTimes
    each_step: tuple[OneStep, ...]
    by_verdict: Mapping[str, VerdictTimes]
    collectives: tuple[CollectiveTimes, ...]
    intervals: tuple[Gaps, ...]
    network: Mapping[str, NetworkUse]
    """By axes, and `all`."""
    volume: Mapping[str, Volume]
    matrix: tuple[PairTraffic, ...] | None
    """None where there would be too many pairs."""
    pipeline: PipelineTimes | None
    per_device: tuple[DeviceTimes, ...]
    imbalance: Mapping[str, Imbalance]
    stragglers: tuple[Straggler, ...]
    messages: tuple[Messages, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Which program one side of a comparison is."""

    arm: str
    cell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalTimeDifference:
    """Two sides' communication, and right less left."""

    left_communication_ns: Number
    right_communication_ns: Number
    difference_communication_ns: Number
    left_exposed_ns: Number
    right_exposed_ns: Number
    difference_exposed_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTimeDifference:
    """The same of one scope and axes."""

    scope: str
    axes: str
    left_communication_ns: Number
    left_exposed_ns: Number
    left_executions: Number
    left_payload_bytes: Number
    right_communication_ns: Number
    right_exposed_ns: Number
    right_executions: Number
    right_payload_bytes: Number
    difference_communication_ns: Number
    difference_exposed_ns: Number
    difference_executions: Number
    difference_payload_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedCollective:
    """A collective of one side, added up over the executions that nothing on the other side matches."""

    side: str
    collective: str
    scope: str
    axes: str
    kind: str
    verdict: str
    cause: str
    reason: str
    communication_ns: Number
    exposed_ns: Number
    executions: Number
    stretches: int
    longest_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedInterval:
    """A stretch of communication that nothing on the other side matches."""

    side: str
    device: int
    weight: int
    """Devices for which it stands."""
    step: int
    start_ns: Number
    """From the step's start."""
    duration_ns: Number
    communication_ns: Number
    exposed_ns: Number
    executions: Number
    collective: str
    scope: str
    axes: str
    kind: str
    verdict: str
    cause: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeDifference:
    """Two arms' timelines compared: right less left."""

    left: Side
    right: Side
    labels: Mapping[str, str]
    """`left` and `right`: what each timeline is."""
    total: TotalTimeDifference
    by_scope: tuple[ScopeTimeDifference, ...]
    """The largest exposed difference first."""
    excess: tuple[UnmatchedCollective, ...]
    stretches: tuple[UnmatchedInterval, ...]
    """The longest of them."""
    num_stretches: int
    notes: tuple[str, ...]
