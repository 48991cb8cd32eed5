"""The programs of a report: each collective with its verdict, the totals, and what of the contract is served."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compare.report.model.codec import OPTIONAL, Json, inline, key
from compare.report.model.contract import ServedRow
from compare.report.model.timing import Timing
from meshes.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class PassChange:
    """What a compiler pass did to a collective that was there before it."""

    by: str = field(metadata=key("pass"))
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """One collective of a program and its verdict; docs/definitions.md says what each column means."""

    name: str
    kind: str
    axes: str
    """Comma-joined, outermost first; `?` where its groups match none."""
    network: str
    form: str
    scope: str
    origin: str
    dtype: str
    executions: int | None
    executions_are: str
    """`exact`, `upper-bound` or `unknown`."""
    payload_bytes: int
    wire_bytes: int
    """One execution, mean over devices."""
    step_wire_bytes: int | None
    """All executions of a step; None where these are unknown, like the three below."""
    source_line: str | None
    changes: tuple[PassChange, ...] = ()
    groups: tuple[tuple[int, ...], ...]
    """Device ids; of a permute pairs."""
    inherent_bytes: int | None
    inflated_bytes: int | None
    induced_bytes: int | None
    causes: Mapping[str, int]
    """Cause -> bytes a step; they add up to inflated + induced."""
    serves: tuple[int, ...]
    """Numbers of the contract rows that it serves."""
    loops: tuple[int | None, ...]
    """Trip counts of the loops around it, outermost first."""
    shapes: tuple[str, ...] = ()
    """Of its operands, like `bf16[16,4096]`."""
    device_executions: tuple[int, ...] | None = None
    """Of each device, where they differ."""
    hlo: str

    @property
    def excess_bytes(self) -> int:
        """inflated + induced; 0 where unknown."""
        return (self.inflated_bytes or 0) + (self.induced_bytes or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Bytes of one step of a program, mean over devices; rows of unknown executions are in none but `unknown_rows`."""

    wire_bytes: int
    ici_wire_bytes: int | None = field(default=None, metadata=OPTIONAL)
    """Of `wire_bytes`, those of collectives within slices.  None in a report of an earlier version."""
    dcn_wire_bytes: int | None = field(default=None, metadata=OPTIONAL)
    """Those of collectives between slices, over the data centre's network."""
    inherent: int
    inflated: int
    induced: int
    missing: int
    """Of contract rows that nothing serves; rows that a collective of unknown executions serves are in neither."""
    unserved: int
    """Of all contract rows, what nothing serves."""
    unknown_rows: int
    upper_bound_rows: int
    common: int | None = None
    """Of inflated + induced, what every arm has.  None where the program was not compared, like the two below."""
    framework_induced: int | None = None
    partitioner_induced: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginTotals:
    """What the program itself, the partitioner or one later pass put there."""

    origin: str
    collectives: int
    step_wire_bytes: int
    inherent_bytes: int
    inflated_bytes: int
    induced_bytes: int
    changes: Mapping[str, int]
    """`pass: what` -> how many of the collectives it was done to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a program was run and measured."""

    case: Case
    """What it was run for, which may be smaller than the run's case."""
    label: str | None
    executed: Mapping[str, Json] | None
    """Platform, devices, runtime …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramReport:
    """One program of an arm: how it was compiled, its collectives, its totals; or why there is none."""

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
    tracer: str | None = field(default=None, metadata=OPTIONAL)
    """What traced it, where that is not the arm's own tracer."""
    witness: str | None = field(default=None, metadata=OPTIONAL)
    """Of a program that other people wrote: the name of its adapter."""
    constraints: int | None = field(default=None, metadata=OPTIONAL)
    """How many shardings of activations such a program asks for."""
    program_digest: str | None = None
    execution: Execution | None = field(default=None, metadata=inline("case"))
    """Of a program that was run."""
    collectives: tuple[CollectiveRow, ...]
    origins: tuple[OriginTotals, ...] = ()
    """Most bytes first; empty where the compiler's passes were not recorded."""
    origins_why_not: str | None = field(default=None, metadata=OPTIONAL)
    """Why they were not, empty where they were; None where there is no program."""
    served: tuple[ServedRow, ...]
    """The contract, and what this program serves of it."""
    totals: Totals | None
    """None where there is no program."""
    timing: Timing | None = field(default=None, metadata=OPTIONAL)
    timing_error: str | None = field(default=None, metadata=OPTIONAL)
    """Why there are no times."""

    @property
    def platform(self) -> str | None:
        """What a program that was run ran on: `cpu` or `tpu`."""
        executed = self.execution.executed if self.execution else None
        platform = (executed or {}).get("platform")
        return platform if isinstance(platform, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPrograms:
    """The programs of one arm in one phase.  In JSON `controls` and `profiles` are keys of the default program."""

    default: ProgramReport = field(metadata=inline("cell", last=("timing", "timing_error")))
    controls: Mapping[str, ProgramReport] = field(default_factory=dict)
    """Cell -> the same program compiled in one other way."""
    profiles: Mapping[str, ProgramReport] = field(default_factory=dict)
    """Cell -> a program that was run and measured."""
    witnesses: Mapping[str, ProgramReport] | None = field(default=None, metadata=OPTIONAL)
    """Cell -> a program that other people wrote; None where none was asked for."""

    @property
    def compiled(self) -> tuple[ProgramReport, ...]:
        """The default program, its controls, then what other people wrote."""
        return self.default, *self.controls.values(), *(self.witnesses or {}).values()

    def __iter__(self) -> Iterator[ProgramReport]:
        """All: the default program, controls, what other people wrote, and what was run."""
        yield from (*self.compiled, *self.profiles.values())

    def cell(self, name: str) -> ProgramReport:
        """The program of this cell."""
        return next(program for program in self if program.cell == name)
