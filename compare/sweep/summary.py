"""The types of sweep.json, which is written from these values and read again as them (`sweep.schema.json`)."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

MATMUL, ELEMENTWISE, NORM, OTHER = "matmul", "memory and elementwise", "norm", "other compute"
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all-reduce", "all-gather", "reduce-scatter"
ALL_TO_ALL, SEND_RECEIVE, OTHER_COMMUNICATION = "all-to-all", "send and receive", "other communication"
IDLE = "idle"

CLASSES = (
    MATMUL,
    ELEMENTWISE,
    NORM,
    OTHER,
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    SEND_RECEIVE,
    OTHER_COMMUNICATION,
    IDLE,
)
"""Of kernels, each HLO operation in one (`compare.sweep.energy.kernels`)."""

Count = Annotated[int, Meta(ge=0)]
Number = Annotated[float, Meta(ge=0)]
Status = Annotated[str, Meta(pattern="^(done|failed|refused|crashed)$")]


class ChipRow(TypedDict):
    """One chip in one step of a program; modelled."""

    use: Number
    """Time in which it computes ÷ step time, mean over its devices."""
    ici_bytes: NotRequired[Number]
    """What its devices send in a step to other chips of their slice, logically (docs/metrics.md, section 7).

    Absent where executions are unknown, and in what earlier versions wrote."""
    ici_byte_hops: Number
    """Bytes × links that the model's messages cross, of what its devices send; their joules are of these."""
    watts: Number
    """Mean over the step, its static power included."""


class EnergySummary(TypedDict):
    """The modelled energy of one program's step (docs/energy.md); watts are of one chip, means over chips."""

    step_j: Number
    low_j: Number
    high_j: Number
    per_token_j: Number
    low_per_token_j: Number
    high_per_token_j: Number
    tokens_per_j: Number
    tokens_per_s: Number
    mean_w: Number
    low_mean_w: Number
    high_mean_w: Number
    peak_w: Number
    """In 1 ms."""
    needless_j: Number
    """For inflated and induced communication."""
    low_needless_j: Number
    high_needless_j: Number
    by_component_j: Mapping[str, Number]
    kernels_ns: Mapping[str, Number]
    """Class of kernel -> ns of the step; they add up to it."""
    chips: list[ChipRow]
    """Empty where a report does not say which devices do the same."""


class ProgramSummary(TypedDict):
    """One program of a case in a phase.  Bytes are of one step, mean over devices; None where unknown."""

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
    ratio: Number | None
    """Emitted ÷ inherent bytes."""
    qualifier: str
    is_default: bool
    is_compared: bool
    unserved: NotRequired[Count | None]
    """Not in what earlier versions wrote."""
    dcn_wire_bytes: Count | None
    modelled_step_ns: Number | None
    modelled_compute_ns: Number | None
    modelled_exposed_ns: Number | None
    energy: NotRequired[EnergySummary]
    """With `--energy`."""
    same_program: NotRequired[bool]
    """Of one with other compiler options and an energy: whether the default one was compiled again, names aside."""


class PhaseSummary(TypedDict):
    """One phase of a case: the bytes that its contract requires, and its programs."""

    inherent_total: Count
    programs: list[ProgramSummary]


class ResultRow(TypedDict):
    """One model on one mesh; fields are None if there is no case."""

    model: str
    mesh: str
    """As it was written."""
    status: Status
    """`done`, `failed`, `refused` or `crashed`."""
    error: str
    case: str | None
    topology: str | None
    num_devices: Count | None
    batch: Count | None
    seq: Count | None
    microbatches: Count | None
    capacity: float | None
    """None also where no token is dropped."""
    dtype: str | None
    loop: NotRequired[str | None]
    attention: NotRequired[str | None]
    experts: NotRequired[Count | None]
    folder: str | None
    """The name of the run folder, beside sweep.json."""
    phases: dict[str, PhaseSummary]
    earlier: NotRequired[bool]
    """Whether it is of an earlier sweep into the same folder."""


class EarlierRows(TypedDict):
    """Of an earlier sweep into the same folder, the rows that stay."""

    arms: Mapping[str, str]
    results: list[ResultRow]


class Sweep(TypedDict):
    """All of a sweep."""

    schema: Literal[1]
    sentence: str
    asked: Mapping[str, object]
    """The options that choose the programs."""
    arms: Mapping[str, str]
    """Arm -> its title."""
    results: list[ResultRow]
