"""The times of a report: one program's metrics, and two arms' timelines compared.  docs/metrics.md defines each.

Times are per device and step, means over both, unless a field says otherwise; `None` where a field does not apply or
the timeline does not show it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from compare.report.model.codec import OPTIONAL, Count, one_of
from compare.report.model.power import MeasuredPower

Signed = int | float | None
"""An int where it is one, else a float to the picosecond; `None` where unknown."""
Number = Annotated[Signed, ("minimum", 0)]
Share = Annotated[Signed, ("minimum", 0), ("maximum", 1)]
Verdict = Annotated[str, one_of("inherent", "inflated", "induced", "unknown")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Where the time of a step goes."""

    step_ns: Number
    communication_ns: Number
    exposed_ns: Number
    """Communication with no compute in parallel; the rest is hidden."""
    hidden_ns: Number
    wait_ns: Number
    compute_ns: Number
    communication_fraction: Number
    overlap: Share
    copy_wait_ns: Number = field(default=None, metadata=OPTIONAL)
    """Neither compute nor communication: the device waits for a local copy.  Absent where no such wait is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTimes(Times):
    """The same for a part of the communication, with its executions and payload."""

    executions: Number
    payload_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTimes(Times):
    """The full step, and its communication by axes and kind: what any profile shows."""

    by_axes: Mapping[str, PartTimes]
    by_kind: Mapping[str, PartTimes]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes(TraceTimes):
    """The same for a program whose scopes are known."""

    by_scope: Mapping[str, PartTimes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStep:
    """One step by itself."""

    step: Count
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
    verdict: Verdict
    """The verdict on most of its bytes."""
    cause: str | None = None
    """The cause with the most bytes."""
    algorithm_bytes_per_s: Count | None = None
    bus_bytes_per_s: Count | None = None
    peak_bytes_per_s: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The gaps between two communications, from the end of one to the start of the next."""

    from_axes: str
    to_axes: str
    n: Count
    median_ns: Signed
    p95_ns: Signed
    iqr_ns: Number
    quantiles_ns: tuple[Signed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """The part of the step in which the network of some axes is in use."""

    duty_cycle: Number
    up_phases: Number
    bytes_per_up_phase: Number
    peak_bytes_per_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Curves over the step: per bin the bytes sent, and the fraction of time in which the network is in use."""

    bins: Count
    wire_bytes: tuple[Number, ...]
    up: tuple[Number, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTraffic:
    """The bytes that one device sends to another."""

    device_from: Count
    device_to: Count
    axes: str
    logical_bytes: Number
    routed_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """One stage of the pipeline."""

    stage: Count
    ticks: Count
    bubble_ticks: Number
    pipeline_ns: Number
    bubble_ns: Number
    busy_in_bubble_ns: Number
    idle_ns: Signed
    bubble_share: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick of the pipeline, from the step's start."""

    tick: Count
    start_ns: Signed
    duration_ns: Number
    microbatches: tuple[Count | None, ...]
    """Per stage the microbatch that it holds, or `None`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePhase:
    """`before`, `fill`, `steady`, `drain` or `after`."""

    phase: str
    start_ns: Signed
    duration_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineTimes:
    """The pipeline, and the fraction of its time in which stages hold no microbatch."""

    stages: tuple[StageTimes, ...]
    bubble_share: Share
    gpipe_bubble_share: Share
    """The bubble share of a uniform GPipe pipeline."""
    ticks: tuple[Tick, ...]
    phases: tuple[PipelinePhase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimes:
    """One device of the timeline, and how many devices it represents."""

    device: Count
    stands_for: Count
    step_ns: Number
    communication_ns: Number
    exposed_ns: Number
    hidden_ns: Number
    wait_ns: Number
    compute_ns: Number
    idle_ns: Signed
    members: tuple[Count, ...] | None = field(default=None, metadata=OPTIONAL)
    """The devices that it represents, itself included; not in what earlier versions wrote."""
    copy_wait_ns: Number = field(default=None, metadata=OPTIONAL)
    """As in `Times`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imbalance:
    """The largest over devices ÷ the mean, and the device that has it."""

    largest_over_mean: Number
    device: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """How late a device reaches its collectives."""

    device: Count
    mean_lag_ns: Signed
    last_share: Number
    """The fraction of its executions that it alone reaches last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Messages of one kind and shape."""

    kind: str
    axes: str
    scope: str
    dtype: str | None
    shapes: tuple[str, ...] | None
    payload_bytes: Number
    """Of one message."""
    count: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAmounts:
    """Work of one device in one step, means over both."""

    matrix_flops: Number
    vector_ops: Number
    memory_bytes: Number
    ici_byte_hops: Number
    dcn_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeWork(WorkAmounts):
    """The work of one part of the model, and how long the device computes it."""

    compute_ns: Number
    arithmetic_ns: Number = field(default=None, metadata=OPTIONAL)
    """Of compute_ns, what matrix_flops take at the peak; without a device's rates there is none of these three."""
    memory_ns: Number = field(default=None, metadata=OPTIONAL)
    """Of the rest, what memory_bytes take longer than that, and waits for local copies."""
    floor_ns: Number = field(default=None, metadata=OPTIONAL)
    """The least that this part of the plan takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork(WorkAmounts):
    """The work of a step, and what of a device's peak it is."""

    useful_flops: Number
    """The model's own arithmetic ÷ devices."""
    useful_share: Number
    """useful_flops ÷ matrix_flops."""
    mfu: Number
    """useful_flops ÷ what the device could do in the step at its peak."""
    matrix_share: Number
    """matrix_flops ÷ what the device could do in the step at its peak."""
    memory_share: Number
    """memory_bytes ÷ what the memory moves in the step by its data sheet."""
    roofline_ns: Number
    """The longer of matrix_flops at the peak and memory_bytes at the memory's rate."""
    by_scope: Mapping[str, ScopeWork]
    floor_ns: Number = field(default=None, metadata=OPTIONAL)
    """The longer of floor_bytes and floor_flops at the schedule model's rates: no program of the plan computes less."""
    floor_bytes: Number = field(default=None, metadata=OPTIONAL)
    floor_flops: Number = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One of the longest operations of a step: instructions of one opcode, shape, scope and source line together.

    Amounts are of one device in one step, of all executions; docs/metrics.md, section 15.
    """

    role: Annotated[str, one_of("compute", "copy", "communication")]
    """`copy` is a wait for a local copy; of a `communication` the times are its exposed ones."""
    opcode: str
    shape: str
    """Of the largest array that it makes; of a collective that of its first operand."""
    path: str | None
    """The framework's name of the operation, the last part of its `op_name`."""
    scope: str
    source_line: str | None
    name: str
    """The instruction that takes longest, of as many as `instructions`."""
    instructions: Count
    tensors: tuple[str, ...]
    """Parameters of the program whose values it reads."""
    executions: Number
    time_ns: Number
    matrix_flops: Number
    memory_bytes: Number
    payload_bytes: Number
    """Of a communication; it has no FLOPs and no bytes of memory."""
    arithmetic_ns: Number
    """matrix_flops at the peak."""
    memory_ns: Number
    """memory_bytes at the rate that the schedule model reaches."""
    bound: Annotated[str, one_of("arithmetic", "memory", "other", "collective")] | None
    """`None` without a device's rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """A one-page summary of a timeline, modelled or measured (`source`); `compare.trace --json` prints it."""

    source: Annotated[str, one_of("measured", "modelled")]
    label: str
    devices: Count
    steps: Count
    unjoined_events: Count
    per_step: TraceTimes
    notes: tuple[str, ...]
    power: MeasuredPower | None = field(default=None, metadata=OPTIONAL)
    """Power and heat where they were measured; without the key they were not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing(TraceSummary):
    """All metrics of one program's timeline."""

    per_step: StepTimes
    each_step: tuple[OneStep, ...]
    by_verdict: Mapping[Verdict, VerdictTimes]
    collectives: tuple[CollectiveTimes, ...]
    intervals: tuple[Gaps, ...]
    network: Mapping[str, NetworkUse]
    """By axes, and `all`."""
    volume: Mapping[str, Volume]
    matrix: tuple[PairTraffic, ...] | None
    """`None` where there would be too many pairs."""
    pipeline: PipelineTimes | None
    per_device: tuple[DeviceTimes, ...]
    imbalance: Mapping[str, Imbalance]
    stragglers: tuple[Straggler, ...]
    messages: tuple[Messages, ...]
    work: StepWork | None = None
    """`None` where the program of the timeline is unknown."""
    operations: tuple[Operation, ...] | None = field(default=None, metadata=OPTIONAL)
    """The longest first; not in what earlier versions wrote, nor where the program is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The program on one side of a comparison."""

    arm: str
    cell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalTimeDifference:
    """Two sides' communication, and right less left."""

    left_communication_ns: Number
    right_communication_ns: Number
    difference_communication_ns: Signed
    left_exposed_ns: Number
    right_exposed_ns: Number
    difference_exposed_ns: Signed


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTimeDifference:
    """The same for one scope and axes."""

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
    difference_communication_ns: Signed
    difference_exposed_ns: Signed
    difference_executions: Signed
    difference_payload_bytes: Signed


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedCollective:
    """A collective of one side: the sum over its executions without a match on the other side."""

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
    stretches: Count
    longest_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedInterval:
    """An interval of communication without a match on the other side."""

    side: str
    device: Count
    weight: Count
    """Number of devices that it represents."""
    step: Count
    start_ns: Signed
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
    """`left` and `right` -> description of the timeline."""
    total: TotalTimeDifference
    by_scope: tuple[ScopeTimeDifference, ...]
    """The largest exposed difference first."""
    excess: tuple[UnmatchedCollective, ...]
    stretches: tuple[UnmatchedInterval, ...]
    """The longest ones."""
    num_stretches: Count
    notes: tuple[str, ...]
