"""Programs that move less than the plan requires: their ratios look too good, and get a footnote mark."""

from collections.abc import Iterator

from compare.render.programs import programs
from compare.render.units import KEPT, axes_text, bytes_text, list_text
from compare.report.model.findings import HeadlineRow
from compare.report.model.report import PhaseReport, Report

MARK = "¹"
LESS = "does not move all that the plan asks"


def mark_ratio(ratio: str, *, short: bool) -> str:
    """`0.56 × ¹` where a part of the plan is unserved."""
    return f"{ratio}{KEPT}{MARK}" if short else ratio


def is_short(phase: PhaseReport, line: HeadlineRow) -> bool:
    """Whether the program of this line of a phase's headline leaves a part of the plan unserved."""
    entries = phase.arms[line.arm].compiled if line.arm in phase.arms else ()
    return any(row.unserved_bytes for entry in entries if entry.cell == line.cell for row in entry.served)


def shortfall_notes(report: Report, phase: str) -> Iterator[str]:
    """Footnotes for programs that move less: the contract rows that they leave unsatisfied, in part or in full."""
    programs_short: dict[str, list[str]] = {}
    for program in programs(report):
        if program.phase != phase or not program.judged:
            continue
        missing = "; ".join(
            f"{row.kind} {axes_text(row.axes)} in {row.scope}, "
            f"{bytes_text(row.unserved_bytes)} of {bytes_text(row.step_wire_bytes)}"
            for row in program.entry.served
            if row.unserved_bytes
        )
        if missing:
            programs_short.setdefault(missing, []).append(f"{program.title} {program.cell}")
    for missing, names in programs_short.items():
        yield f"{MARK} {list_text(names)} {'do' if len(names) > 1 else 'does'} not move all of the plan: {missing}"
