"""The differences of a phase's programs, merged over arms; small ones are only counted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.render import blocks
from compare.render.programs import Program, compared_programs, programs, titles
from compare.render.report.step_walkthrough import Move, group_moves, sum_causes
from compare.render.units import UNKNOWN, axes_text, bytes_text, count_text, list_text, times_text
from compare.report.attribution import REDUCED_SHARE
from compare.report.controls import describe_control
from compare.report.grouping import group_by, largest_first, sum_by
from compare.report.model.codec import copy_fields
from compare.report.model.contract import ServedRow
from compare.report.model.findings import Difference
from compare.report.model.program import ProgramReport
from compare.report.model.report import PhaseReport, Report

SMALL_SHARE = 0.005
"""A finding below this fraction of the phase's bytes beyond the plan is only counted."""

MOST_DIFFERENCES = 8
"""Findings that are listed; the rest is one line."""

NOT_COMPARED = f"{UNKNOWN}: not compared; frameworks are compared on default programs and under one partitioner."
"""The meaning of a dash in the headline."""

HLO_LINES, HLO_CHARACTERS = 2, 1500
"""HLO lines shown of similar instructions, and the characters of each."""

PARTITIONERS: Mapping[str, str] = {"shardy": "Shardy", "gspmd": "GSPMD"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Bytes beyond the plan of one scope, axes, kind, verdict and cause, in each arm."""

    entries: tuple[Difference, ...]
    """One of each arm that has it, largest first."""

    @property
    def first(self) -> Difference:
        return self.entries[0]

    @property
    def excess_bytes(self) -> int:
        """Bytes per step of the largest arm beyond the next one; 0 where all arms have the same."""
        return max(0, self.first.excess_bytes)

    @property
    def by_arm(self) -> dict[str, int]:
        return {entry.arm: entry.bytes for entry in self.entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """A phase's findings: `listed`, `alike` in every arm, and the `small` rest."""

    listed: tuple[Finding, ...]
    alike: tuple[Finding, ...]
    """The same bytes in every arm: common."""
    small: tuple[Finding, ...]


def group_findings(phase: PhaseReport) -> Findings:
    """Group the differences of a phase; each is in exactly one of the three parts, largest first."""
    merged = group_by(
        phase.differences, lambda entry: (entry.scope, entry.axes, entry.kind, entry.verdict, entry.cause)
    )
    findings = [Finding(entries=tuple(sorted(rows, key=lambda row: -row.bytes))) for rows in merged.values()]
    different = [finding for finding in findings if finding.excess_bytes]
    different.sort(key=lambda finding: (-finding.excess_bytes, -finding.first.bytes))
    alike = sorted(
        (finding for finding in findings if not finding.excess_bytes), key=lambda finding: -finding.first.bytes
    )
    least = SMALL_SHARE * max(
        (sum_bytes(entry.arm, findings) for finding in findings for entry in finding.entries), default=0
    )
    listed = tuple(finding for finding in different if finding.excess_bytes >= least)[:MOST_DIFFERENCES]
    small = tuple(finding for finding in different if finding not in listed)
    return Findings(listed=listed, alike=tuple(alike), small=small)


def heading(report: Report, phase: str) -> str:
    """The heading of a phase's findings, which are differences only if several arms are compared."""
    arms = report.phases[phase].compared_cells
    return f"Largest {'differences' if len(arms) > 1 else 'bytes beyond the plan'} (bytes per step)"


def has_uncompared(phase: PhaseReport) -> bool:
    """Whether some judged program was not compared."""
    return any(line.status == "ok" and line.common is None for line in phase.headline)


def sum_bytes(arm: str, findings: Sequence[Finding]) -> int:
    """Bytes per step of one arm in these findings."""
    return sum(finding.by_arm.get(arm, 0) for finding in findings)


def arms_text(finding: Finding, *, titles: Mapping[str, str]) -> str:
    """`TorchXLA 805 MB, JAX 0 B`."""
    amounts = {arm: finding.by_arm.get(arm, 0) for arm in (*finding.by_arm, *finding.first.others)}
    return ", ".join(f"{titles.get(arm, arm)} {bytes_text(amount)}" for arm, amount in amounts.items())


def bytes_at_place(entry: Difference, phase: PhaseReport) -> int:
    """Bytes of all causes of the entry's arm, scope, axes and verdict, comparable with its `controls`."""
    place = (entry.arm, entry.scope, entry.axes, entry.verdict)
    return sum(
        other.bytes for other in phase.differences if (other.arm, other.scope, other.axes, other.verdict) == place
    )


def absent_in(entry: Difference) -> list[str]:
    """The control cells without any of these bytes."""
    return [cell for cell, left in entry.controls.items() if not left]


def default_notes(report: Report, phase: str) -> list[str]:
    """A sentence for each default program that was not compared and moves other bytes than the compared one."""
    compared_by_arm = {program.arm: program for program in compared_programs(report, phase)}
    notes = []
    for program in programs(report):
        compared = compared_by_arm.get(program.arm)
        if program.phase != phase or not program.default or not program.judged or compared is None:
            continue
        if sum_causes(program.rows) != sum_causes(compared.rows):
            notes.append(
                f"{program.title} {program.cell}, under {program.entry.partitioner}, moves "
                f"{_excess_text(sum_causes(program.rows))}; "
                f"{compared.cell}, under the partitioner of the others, is compared instead"
            )
    return notes


def _excess_text(causes: Mapping[str, int]) -> str:
    amounts = ", ".join(f"{cause} {bytes_text(total)}" for cause, total in causes.items())
    return f"{bytes_text(sum(causes.values()))} beyond the plan" + (f" ({amounts})" if amounts else "")


def control_text(entry: Difference, phase: PhaseReport) -> str:
    """Which controls remove it: `absent in tpu+einsum (the same model with attention written as einsum)`."""
    total = bytes_at_place(entry, phase)
    reduced, unchanged = [], []
    for cell, left in sorted(entry.controls.items(), key=lambda item: item[1]):
        name = _cell_name(cell, phase.arms[entry.arm].default)
        if total - left >= REDUCED_SHARE * total > 0:
            what = "absent" if not left else f"{bytes_text(total)} → {bytes_text(left)}"
            reduced.append(f"{what} in {name}")
        else:
            unchanged.append(name)
    return "; ".join(reduced) or (f"also in {list_text(unchanged)}" if unchanged else "")


def _cell_name(cell: str, default: ProgramReport) -> str:
    """A cell with its description; a default program is described by its partitioner."""
    if cell == default.cell:
        partitioner = str(default.partitioner)
        return f"its {PARTITIONERS.get(partitioner, partitioner)} program ({cell})"
    return f"{cell} ({describe_control(cell)})"


def sources(entry: Difference, shown: Sequence[Program]) -> list[tuple[str, int]]:
    """The distinct source lines of one arm's part of a difference and their bytes, the most first."""
    names = set(entry.names)
    by_line = sum_by(
        (row.source_line, row.causes.get(entry.cause, 0))
        for program in shown
        for row in (program.rows if program.arm == entry.arm else ())
        if row.name in names and row.source_line
    )
    return list(largest_first(by_line).items())


def difference(finding: Finding, report: Report, phase: str) -> blocks.DifferenceItem:
    """A finding as a block, with its evidence: contract rows, and HLO of each arm."""
    entry, phase_report, names = finding.first, report.phases[phase], titles(report)
    shown = compared_programs(report, phase)
    contract = [_contract_row(phase_report.inherent[index]) for index in entry.serves]
    near = [] if contract else [_contract_row(row) for row in phase_report.inherent if row.scope == entry.scope]
    return copy_fields(
        entry,
        blocks.DifferenceItem,
        amount=bytes_text(finding.excess_bytes or entry.bytes),
        arm=names.get(entry.arm, entry.arm) if finding.excess_bytes else "Every arm",
        collective=f"{entry.kind} {axes_text(entry.axes)}",
        executions=times_text(entry.executions),
        instructions=len(entry.names),
        by_arm=arms_text(finding, titles=names) if entry.others else "",
        sources=tuple((line, bytes_text(amount)) for line, amount in sources(entry, shown)),
        absent_in=tuple(absent_in(entry)),
        control=control_text(entry, phase_report),
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
    """The moves of one arm's part of a difference, with a few lines of HLO each."""
    program = next((shown_program for shown_program in shown if shown_program.arm == entry.arm), None)
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
