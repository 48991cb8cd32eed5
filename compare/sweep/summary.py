"""The types of sweep.json, which is written from these values and read again as them (`sweep.schema.json`)."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict


class ChipRow(TypedDict):
    """One chip in one step of a program; modelled."""

    use: float
    """Time in which it computes ÷ step time, mean over its devices."""
    ici_bytes: NotRequired[float]
    """What its devices send in a step to other chips of their slice, logically (docs/metrics.md, section 7).

    Absent where executions are unknown, and in what earlier versions wrote."""
    ici_byte_hops: float
    """Bytes × links that the model's messages cross, of what its devices send; their joules are of these."""
    watts: float
    """Mean over the step, its static power included."""


class EnergySummary(TypedDict):
    """The modelled energy of one program's step (docs/energy.md); watts are of one chip, means over chips."""

    step_j: float
    low_j: float
    high_j: float
    per_token_j: float
    low_per_token_j: float
    high_per_token_j: float
    tokens_per_j: float
    tokens_per_s: float
    mean_w: float
    low_mean_w: float
    high_mean_w: float
    peak_w: float
    """In 1 ms."""
    needless_j: float
    """For inflated and induced communication."""
    low_needless_j: float
    high_needless_j: float
    by_component_j: Mapping[str, float]
    kernels_ns: Mapping[str, float]
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
    inherent: int | None
    inflated: int | None
    induced: int | None
    common: int | None
    framework_induced: int | None
    missing: int | None
    wire_bytes: int | None
    ratio: float | None
    """Emitted ÷ inherent bytes."""
    qualifier: str
    is_default: bool
    is_compared: bool
    unserved: NotRequired[int | None]
    """Not in what earlier versions wrote."""
    dcn_wire_bytes: int | None
    modelled_step_ns: float | None
    modelled_compute_ns: float | None
    modelled_exposed_ns: float | None
    energy: NotRequired[EnergySummary]
    """With `--energy`."""
    same_program: NotRequired[bool]
    """Of one with other compiler options and an energy: whether the default one was compiled again, names aside."""


class PhaseSummary(TypedDict):
    """One phase of a case: the bytes that its contract requires, and its programs."""

    inherent_total: int
    programs: list[ProgramSummary]


class ResultRow(TypedDict):
    """One model on one mesh; fields are None if there is no case."""

    model: str
    mesh: str
    """As it was written."""
    status: str
    """`done`, `failed`, `refused` or `crashed`."""
    error: str
    case: str | None
    topology: str | None
    num_devices: int | None
    batch: int | None
    seq: int | None
    microbatches: int | None
    capacity: float | None
    """None also where no token is dropped."""
    dtype: str | None
    loop: NotRequired[str | None]
    attention: NotRequired[str | None]
    experts: NotRequired[int | None]
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

    schema: int
    sentence: str
    asked: Mapping[str, object]
    """The options that choose the programs."""
    arms: Mapping[str, str]
    """Arm -> its title."""
    results: list[ResultRow]
