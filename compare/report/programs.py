"""The result of each program of a run, and the same read and judged."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compare.contract.reference_algorithms import required_rows
from compare.contract.row import ContractRow
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module, read
from compare.passes.lineage import Track, add_origins, trace_archive
from compare.report.model.about import About
from compare.verdict.verdict import Judgement, judge
from meshes.case import Case
from meshes.process.one_line import one_line

Key = tuple[str, str, str]
"""Arm, phase, cell."""

NOT_OFFERED = "not offered"
"""Status of a control that does not exist for this program, which is no failure."""
REFUSED = "refused"
"""Status of a program that its worker declined to make, or that does not fit the memory; its error says why."""
MISSING = "missing"
"""Status of a program that was compiled, and whose files are gone."""
DAMAGED = "damaged"
"""Status of a program whose files cannot be read."""
GOOD = ("ok", NOT_OFFERED)
"""Statuses that are no failure."""
UNREADABLE = (DAMAGED, MISSING)
"""Statuses of a program that was compiled, and cannot be read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """The result of one program of one arm: `hlo` and `about` where it was compiled, else the error."""

    arm: str
    phase: str
    cell: str
    status: str
    """`ok`, or what happened instead: `failed`, `crashed`, `timeout`, `not installed` …"""
    error: str | None = None
    about: About | None = None
    witness: bool = False
    """Whether it is other people's program."""
    hlo: str | None = None
    passes: bytes | None = None
    """The archive of the passes that its compile recorded; `None` where there is none."""
    executed: Case | None = None
    """Of a program that was run and measured: its case, which may be smaller than the run's."""

    @property
    def key(self) -> Key:
        return self.arm, self.phase, self.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedProgram:
    """One program, read and judged; `module` and `judgement` are `None` where it failed."""

    case: Case
    """Of its phase alone; of an executed program, the case it was run for."""
    result: ProgramResult
    contract: tuple[ContractRow, ...]
    module: Module | None = None
    rows: tuple[Collective, ...] = ()
    """Its collectives, in program order."""
    lineage: Mapping[str, Track] | None = None
    """Collective -> what the compiler did to it; `None` where unknown."""
    why_no_lineage: str = ""
    judgement: Judgement | None = None

    @property
    def about(self) -> About:
        """Its about.json; only the status where it failed early."""
        return self.result.about or About(status=self.result.status)


def judge_program(case: Case, result: ProgramResult) -> JudgedProgram:
    """Read a program and judge it by the contract of its case.  Raises `HloError` where its HLO is not understood."""
    program_case = (result.executed or case).at(phases=(result.phase,))
    contract = required_rows(program_case)
    lineage, why_not = _lineage(result)
    program = JudgedProgram(
        case=program_case, result=result, contract=contract, lineage=lineage, why_no_lineage=why_not
    )
    if result.status != "ok" or result.hlo is None:
        return program
    axes, module = program_case.mesh.split_axes, read(result.hlo)
    roles = {parameter.index: parameter.role for parameter in program.about.parameters or ()}
    rows = collectives(
        module,
        axes,
        contract=contract,
        caches=frozenset(index for index, role in roles.items() if role == "cache"),
        weights=frozenset(index for index, role in roles.items() if role == "weight"),
        device_ids=program.about.device_ids or (),
        names=SourceNames.of(owns=program.about.owns or ()),
    )
    rows = rows if lineage is None else add_origins(rows, lineage)
    judgement = judge(rows, contract, axes=axes, roles=roles)
    return replace(program, module=module, rows=tuple(rows), judgement=judgement)


def judge_programs(case: Case, results: Iterable[ProgramResult]) -> list[JudgedProgram]:
    """The programs of a run, judged; one that is not understood becomes `damaged`, the others are unaffected."""
    return [_judge_or_say_why(case, result) for result in results]


def _judge_or_say_why(case: Case, result: ProgramResult) -> JudgedProgram:
    try:
        return judge_program(case, result)
    except HloError as problem:
        error = one_line(f"{'/'.join(result.key)}/optimized.hlo.gz cannot be understood: {problem}")
        return judge_program(case, replace(result, status=DAMAGED, error=error, hlo=None))


def list_failures(results: Iterable[ProgramResult]) -> tuple[str, ...]:
    """A line for each program that failed, in the run or when it was read: which, and why.

    Of judged programs: what is not understood shows there only.
    """
    return tuple(f"left out: {describe_failure(result)}" for result in results if result.status not in GOOD)


def list_untraced(programs: Iterable[JudgedProgram]) -> tuple[str, ...]:
    """A line for each program whose recorded passes cannot be read."""
    return tuple(
        f"left out: {'/'.join(program.result.key)}: {program.why_no_lineage}"
        for program in programs
        if program.result.hlo is not None and program.result.passes is not None and program.lineage is None
    )


def list_unread(programs: Iterable[JudgedProgram]) -> tuple[str, ...]:
    """The same of those of a judged run that were compiled."""
    return list_failures(program.result for program in programs if not program.result.executed)


def describe_failure(result: ProgramResult) -> str:
    """`jax/decode/tpu: …`, or the name of its file and what is wrong with that."""
    name, error = "/".join(result.key), result.error or result.status
    return error if error.startswith(f"{name}/") else f"{name}: {error}"


def _lineage(result: ProgramResult) -> tuple[Mapping[str, Track] | None, str]:
    """(collective -> what the compiler did to it, or `None`; why that is unknown)."""
    if result.hlo is None or result.passes is None:
        why_not = ((result.about and result.about.passes) or {}).get("why_not")
        return None, why_not if isinstance(why_not, str) and why_not else "not recorded"
    try:
        return trace_archive(result.passes, result.hlo), ""
    except HloError as error:
        return None, str(error)
