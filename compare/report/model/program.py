"""The programs of a report: each collective with its verdict, the totals, and the contract rows that it satisfies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from compare.report.model.codec import OPTIONAL, Count, Json, inline, key, one_of
from compare.report.model.contract import ServedRow
from compare.report.model.energy import Amount, StepEnergy
from compare.report.model.timing import Timing
from meshes.case import Case

DEFAULT_CELL = "tpu"
"""The program as it is without any control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassChange:
    """What a compiler pass did to an existing collective."""

    by: str = field(metadata=key("pass"))
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """One collective of a program and its verdict; docs/definitions.md says what each column means."""

    name: str
    kind: str
    axes: str
    """Comma-joined, outermost first; `?` where its groups match none."""
    network: Annotated[str, one_of("ici", "dcn")]
    form: str
    scope: str
    origin: str
    dtype: str
    executions: Count | None
    executions_are: Annotated[str, one_of("exact", "stated", "upper-bound", "unknown")]
    """`stated`: in a loop whose count only the compiler states."""
    payload_bytes: Count
    wire_bytes: Count
    """One execution, mean over devices."""
    step_wire_bytes: Count | None
    """All executions of a step; `None` where these are unknown, like the three below."""
    source_line: str | None
    changes: tuple[PassChange, ...] = ()
    groups: tuple[tuple[Count, ...], ...]
    """Device ids; of a permute pairs."""
    inherent_bytes: Count | None
    inflated_bytes: Count | None
    induced_bytes: Count | None
    causes: Mapping[str, Count]
    """Cause -> bytes a step; they add up to inflated + induced."""
    serves: tuple[Count, ...]
    """Indices of the contract rows that it satisfies."""
    loops: tuple[Count | None, ...]
    """Trip counts of the loops around it, outermost first."""
    shapes: tuple[str, ...] = ()
    """Of its operands, like `bf16[16,4096]`."""
    device_executions: tuple[Count, ...] | None = None
    """Of each device, where they differ."""
    hlo: str

    @property
    def excess_bytes(self) -> int:
        """inflated + induced; 0 where unknown."""
        return (self.inflated_bytes or 0) + (self.induced_bytes or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Bytes of one step of a program, mean over devices; rows of unknown executions count in `unknown_rows` only."""

    wire_bytes: Count
    ici_wire_bytes: Count | None = field(default=None, metadata=OPTIONAL)
    """`wire_bytes` of collectives within slices.  `None` in a report of an earlier version."""
    dcn_wire_bytes: Count | None = field(default=None, metadata=OPTIONAL)
    """`wire_bytes` of collectives between slices, over the data centre's network."""
    inherent: Count
    inflated: Count
    induced: Count
    missing: Count
    """Bytes of contract rows that nothing satisfies; without rows that a collective of unknown executions satisfies."""
    unserved: Count
    """Bytes of all contract rows that nothing satisfies; the same rows are left out."""
    unknown_rows: Count
    upper_bound_rows: Count
    common: Count | None = None
    """Of inflated + induced, what every arm has.  `None` where the program was not compared, like the two below."""
    framework_induced: Count | None = None
    partitioner_induced: int | None = None
    compute_over_floor: Amount | None = field(default=None, metadata=OPTIONAL)
    """Of a modelled program: compute_ns ÷ the floor of its plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginTotals:
    """The collectives of one origin: the program itself, the partitioner or a later pass."""

    origin: str
    collectives: Count
    step_wire_bytes: Count
    inherent_bytes: Count
    inflated_bytes: Count
    induced_bytes: Count
    changes: Mapping[str, Count]
    """`pass: what` -> number of collectives that it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a program was run and measured."""

    case: Case
    """The case it was run for, which may be smaller than the run's case."""
    label: str | None
    executed: Mapping[str, Json] | None
    """Platform, devices, runtime …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramReport:
    """One program of an arm: how it was compiled, its collectives, its totals; or why it failed."""

    cell: str
    status: str
    """`ok`, or what happened instead."""
    error: str | None
    partitioner: str | None
    versions: Mapping[str, str] | None
    compile_options: Mapping[str, Json] | None
    seconds: Mapping[str, Json] | None
    memory: Mapping[str, float | None] | None
    cost: Mapping[str, Json] | None
    loop: str | None
    attention: str | None
    style: str | None
    cache: str | None = field(default=None, metadata=OPTIONAL)
    """How a decode step reads and writes its cache."""
    tracer: str | None = field(default=None, metadata=OPTIONAL)
    """The tracer, where it is not the arm's own."""
    witness: str | None = field(default=None, metadata=OPTIONAL)
    """Of a program that other people wrote: the name of its adapter."""
    constraints: Count | None = field(default=None, metadata=OPTIONAL)
    """Of a program that other people wrote: the number of sharding constraints on activations."""
    program_digest: str | None = None
    execution: Execution | None = field(default=None, metadata=inline("case"))
    """Of a program that was run."""
    collectives: tuple[CollectiveRow, ...]
    origins: tuple[OriginTotals, ...] = ()
    """Most bytes first; empty where the compiler's passes were not recorded."""
    origins_why_not: str | None = field(default=None, metadata=OPTIONAL)
    """Why they were not recorded, empty where they were; `None` where there is no program."""
    served: tuple[ServedRow, ...]
    """The contract, and the bytes of each row that this program satisfies."""
    totals: Totals | None
    """None where there is no program."""
    timing: Timing | None = field(default=None, metadata=OPTIONAL)
    timing_error: str | None = field(default=None, metadata=OPTIONAL)
    """Why there are no times."""
    energy: StepEnergy | None = field(default=None, metadata=OPTIONAL)
    """Of a modelled step; `None` where nothing was modelled, or not for a TPU that is in the table."""

    @property
    def platform(self) -> str | None:
        """The platform of a program that was run: `cpu` or `tpu`."""
        executed = self.execution.executed if self.execution else None
        platform = (executed or {}).get("platform")
        return platform if isinstance(platform, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPrograms:
    """The programs of one arm in one phase.  In JSON `controls` and `profiles` are keys of the default program."""

    default: ProgramReport = field(metadata=inline("cell", last=("timing", "timing_error", "energy")))
    controls: Mapping[str, ProgramReport] = field(default_factory=dict)
    """Cell -> the default program with one thing changed."""
    profiles: Mapping[str, ProgramReport] = field(default_factory=dict)
    """Cell -> a program that was run and measured."""
    witnesses: Mapping[str, ProgramReport] | None = field(default=None, metadata=OPTIONAL)
    """Cell -> a program that other people wrote; `None` where none was requested."""

    @property
    def compiled(self) -> tuple[ProgramReport, ...]:
        """The default program, its controls, then what other people wrote."""
        return self.default, *self.controls.values(), *(self.witnesses or {}).values()

    def __iter__(self) -> Iterator[ProgramReport]:
        """All programs: the default, controls, witnesses, and those that were run."""
        yield from (*self.compiled, *self.profiles.values())

    def cell(self, name: str) -> ProgramReport:
        """The program of this cell."""
        return next(program for program in self if program.cell == name)
