"""What any profile shows of each of its programs: times, source lines, parts of the model, the longest operations.

Times and amounts are of one device in one execution of the program, means over both, unless a field says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from compare.report.model.timing import Number, TraceTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTotal:
    """All communications of one kind, of all devices and executions together."""

    count: int
    total_ns: Number
    exposed_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceTimes:
    """The operations of one kind of time that come from one place: a source line, or a part of the model."""

    place: str
    """`?` where the profile does not say."""
    inner: str
    """Of a source line of the user the innermost frame, where that is another: a line of a library."""
    role: str
    """`compute`, `copy` (waits for local copies) or `communication`."""
    kind: str
    """Of a communication; else empty."""
    axes: str
    executions: Number
    time_ns: Number
    exposed_ns: Number
    """Of a communication its share of the exposed time; of others all."""
    payload_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOperation:
    """Operations of one name but for its number, category and place."""

    role: str
    name: str
    """The longest of them."""
    instructions: int
    category: str
    """XLA's `hlo_category`; of a communication its kind; empty where not shown."""
    moves: str
    """Of a local copy, from which memory to which; of a communication its axes."""
    source: str
    part: str
    executions: Number
    payload_bytes: Number
    """Of a communication."""
    time_ns: Number
    exposed_ns: Number
    flops: Number
    """`model_flops`; `None` where the profile has none."""
    memory_bytes: Number
    """`bytes_accessed`: operands and results, whole."""
    roofline_ns: Number
    """The longer of these two at the rates that the profile gives of its device; of compute alone."""
    bound: str
    """`arithmetic` or `memory`, the longer of the two; empty where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTimes:
    """One program of a profile."""

    program: str
    executions: Number
    """On one device, mean over devices."""
    devices: int
    total_ns: Number
    """Of all executions on one device, mean over devices."""
    share: Number
    """Of the time of all programs."""
    per_execution: TraceTimes
    communication: Mapping[str, KindTotal]
    lines: tuple[PlaceTimes, ...]
    """The longest first, at most MOST_PLACES."""
    parts: tuple[PlaceTimes, ...]
    operations: tuple[TraceOperation, ...]
    """The ten longest of each kind of time, the kind with the most time first."""
