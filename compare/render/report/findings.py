"""What a phase's programs differ in: arms beside each other, the small differences counted apart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.render import blocks
from compare.render.programs import Program, compared_programs, programs, titles
from compare.render.report.step_walkthrough import Move, group_moves
from compare.render.units import UNKNOWN, axes_text, bytes_text, count_text, list_text, times_text
from compare.report.attribution import SOME
from compare.report.controls import describe_control
from compare.report.model.contract import ServedRow
from compare.report.model.findings import Difference
from compare.report.model.program import ProgramReport
from compare.report.model.report import PhaseReport, Report

SMALL = 0.005
"""Of what the phase's programs move beyond the plan: a finding below this part is only counted."""

MOST = 8
"""Findings that are shown one by one; the rest is one line."""

NOT_COMPARED = f"{UNKNOWN}: not compared; frameworks are compared on default programs and under one partitioner."
"""What a dash in a headline says."""

HLO_LINES, HLO_CHARACTERS = 2, 1500
"""Of a group of alike instructions, how many lines are shown, and how much of each."""

PARTITIONERS: Mapping[str, str] = {"shardy": "Shardy", "gspmd": "GSPMD"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One scope, axes, kind, verdict and cause: what each arm moves there that the plan does not ask for."""

    entries: tuple[Difference, ...]
    """One of each arm that has it, the largest first."""

    @property
    def first(self) -> Difference:
        return self.entries[0]

    @property
    def excess_bytes(self) -> int:
        """Bytes a step of the largest arm beyond the next one's: nothing where all arms have the same."""
        return max(0, self.first.excess_bytes)

    @property
    def by_arm(self) -> dict[str, int]:
        return {entry.arm: entry.bytes for entry in self.entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """A phase's findings: `told` one by one, `alike` in every arm, and the `small` rest."""

    listed: tuple[Finding, ...]
    alike: tuple[Finding, ...]
    """The same bytes in every arm: common, whoever asked for them."""
    small: tuple[Finding, ...]


def group_findings(phase: PhaseReport) -> Findings:
    """Every difference of a phase is in exactly one of the three parts, the largest first."""
    merged: dict[tuple[str, ...], list[Difference]] = {}
    for entry in phase.differences:
        key = (entry.scope, entry.axes, entry.kind, entry.verdict, entry.cause)
        merged.setdefault(key, []).append(entry)
    found = [Finding(entries=tuple(sorted(rows, key=lambda row: -row.bytes))) for rows in merged.values()]
    apart = [one for one in found if one.excess_bytes]
    apart.sort(key=lambda one: (-one.excess_bytes, -one.first.bytes))
    alike = sorted((one for one in found if not one.excess_bytes), key=lambda one: -one.first.bytes)
    least = SMALL * max((sum_bytes(entry.arm, found) for one in found for entry in one.entries), default=0)
    told = tuple(one for one in apart if one.excess_bytes >= least)[:MOST]
    small = tuple(one for one in apart if one not in told)
    return Findings(listed=told, alike=tuple(alike), small=small)


def heading(report: Report, phase: str) -> str:
    """What a phase's findings are: differences, where there is something to differ from."""
    arms = report.phases[phase].compared_cells
    return f"Largest {'differences' if len(arms) > 1 else 'bytes beyond the plan'} (bytes per step)"


def has_uncompared(phase: PhaseReport) -> bool:
    """Whether a program is judged and not compared."""
    return any(line.status == "ok" and line.common is None for line in phase.headline)


def sum_bytes(arm: str, findings: Sequence[Finding]) -> int:
    """Bytes a step of one arm in these findings."""
    return sum(one.by_arm.get(arm, 0) for one in findings)


def arms_text(finding: Finding, *, titles: Mapping[str, str]) -> str:
    """`TorchXLA 805 MB, JAX 0 B`."""
    amounts = {arm: finding.by_arm.get(arm, 0) for arm in (*finding.by_arm, *finding.first.others)}
    return ", ".join(f"{titles.get(arm, arm)} {bytes_text(amount)}" for arm, amount in amounts.items())


def bytes_at_place(entry: Difference, phase: PhaseReport) -> int:
    """Bytes of all causes of this arm, scope, axes and verdict: what an entry's `controls` are compared with."""
    place = (entry.arm, entry.scope, entry.axes, entry.verdict)
    return sum(
        other.bytes for other in phase.differences if (other.arm, other.scope, other.axes, other.verdict) == place
    )


def absent_in(entry: Difference) -> list[str]:
    """The control cells in which nothing of it is left."""
    return [cell for cell, left in entry.controls.items() if not left]


def default_notes(report: Report, phase: str) -> list[str]:
    """A sentence for each default program that is not the compared one of its arm, and moves something else."""
    shown = {one.arm: one for one in compared_programs(report, phase)}
    told = []
    for one in programs(report):
        instead = shown.get(one.arm)
        if one.phase != phase or not one.default or not one.judged or instead is None:
            continue
        if _causes(one) != _causes(instead):
            told.append(
                f"{one.title} {one.cell}, under {one.entry.partitioner}, moves {_beyond(_causes(one))}; "
                f"{instead.cell}, under the partitioner of the others, is compared in its place"
            )
    return told


def _causes(program: Program) -> dict[str, int]:
    """Cause -> bytes a step of a whole program, the largest first."""
    causes: dict[str, int] = {}
    for row in program.rows:
        for cause, amount in row.causes.items():
            causes[cause] = causes.get(cause, 0) + amount
    return dict(sorted(causes.items(), key=lambda found: -found[1]))


def _beyond(causes: Mapping[str, int]) -> str:
    told = ", ".join(f"{cause} {bytes_text(total)}" for cause, total in causes.items())
    return f"{bytes_text(sum(causes.values()))} beyond the plan" + (f" ({told})" if told else "")


def control_text(entry: Difference, phase: PhaseReport) -> str:
    """Which control cell removes it: `absent in tpu+einsum (the same model with attention written as einsum)`."""
    there = bytes_at_place(entry, phase)
    told, stays = [], []
    for cell, left in sorted(entry.controls.items(), key=lambda found: found[1]):
        name = _cell_name(cell, phase.arms[entry.arm].default)
        if there - left >= SOME * there > 0:
            what = "absent" if not left else f"{bytes_text(there)} → {bytes_text(left)}"
            told.append(f"{what} in {name}")
        else:
            stays.append(name)
    return "; ".join(told) or (f"also in {list_text(stays)}" if stays else "")


def _cell_name(cell: str, default: ProgramReport) -> str:
    """A default program is no control: it is an arm's own, under its partitioner."""
    if cell == default.cell:
        partitioner = str(default.partitioner)
        return f"its {PARTITIONERS.get(partitioner, partitioner)} program ({cell})"
    return f"{cell} ({describe_control(cell)})"


def sources(entry: Difference, shown: Sequence[Program]) -> list[tuple[str, int]]:
    """The distinct lines of source behind one arm's part of a difference and their bytes, the most first."""
    names, found = set(entry.names), dict[str, int]()
    for program in shown:
        for row in program.rows if program.arm == entry.arm else ():
            if row.name in names and row.source_line:
                amount = row.causes.get(entry.cause, 0)
                found[row.source_line] = found.get(row.source_line, 0) + amount
    return sorted(found.items(), key=lambda line: -line[1])


def difference(finding: Finding, report: Report, phase: str) -> blocks.Difference:
    """A finding in words, with its evidence: contract rows, and for each arm the HLO."""
    entry, found, names = finding.first, report.phases[phase], titles(report)
    shown = compared_programs(report, phase)
    contract = [_contract_row(found.inherent[number]) for number in entry.serves]
    near = [] if contract else [_contract_row(row) for row in found.inherent if row.scope == entry.scope]
    return blocks.Difference(
        amount=bytes_text(finding.excess_bytes or entry.bytes),
        arm=names.get(entry.arm, entry.arm) if finding.excess_bytes else "Every arm",
        collective=f"{entry.kind} {axes_text(entry.axes)}",
        scope=entry.scope,
        verdict=entry.verdict,
        cause=entry.cause,
        sentence=entry.sentence,
        remedy=entry.remedy,
        executions=times_text(entry.executions),
        instructions=len(entry.names),
        by_arm=arms_text(finding, titles=names) if entry.others else "",
        sources=tuple((line, bytes_text(amount)) for line, amount in sources(entry, shown)),
        absent_in=tuple(absent_in(entry)),
        control=control_text(entry, found),
        contract=tuple(contract),
        near=tuple(near),
        evidence=tuple(proof for entry in finding.entries for proof in _evidence(entry, shown)),
    )


def _contract_row(row: ServedRow) -> blocks.ContractRow:
    amounts = f"{times_text(row.executions)} {bytes_text(row.payload_bytes)}"
    return blocks.ContractRow(
        collective=f"{row.kind} {axes_text(row.axes)}",
        scope=row.scope,
        words=f"{amounts}, {bytes_text(row.step_wire_bytes)} per step",
        formula=row.formula,
        source=row.source,
    )


def _evidence(entry: Difference, shown: Sequence[Program]) -> Iterator[blocks.Evidence]:
    """For one arm's part of a difference its moves, with a few lines of HLO each."""
    program = next((one for one in shown if one.arm == entry.arm), None)
    if program is None:
        return
    names = set(entry.names)
    for move in group_moves(row for row in program.rows if row.name in names):
        hlo = tuple(_cut(row.hlo) for row in move.rows[:HLO_LINES])
        amount = bytes_text(sum(row.causes.get(entry.cause, 0) for row in move.rows))
        like = "these" if len(hlo) > 1 else "this"
        yield blocks.Evidence(
            program=program.title,
            cell=program.cell,
            words=f"{count_text(len(move.rows), 'instruction')} like {like}, {amount} of this cause",
            sources=_source_lines(move),
            hlo=hlo,
        )


def _cut(line: str) -> str:
    text = line.strip()
    return text if len(text) <= HLO_CHARACTERS else text[:HLO_CHARACTERS] + " …"


def _source_lines(move: Move) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.source_line for row in move.rows if row.source_line))
