"""The programs of a report as one list: every phase, arm and cell."""

from collections.abc import Iterator
from dataclasses import dataclass

from compare.report.headline import title_of
from compare.report.model.program import CollectiveRow, ProgramReport
from compare.report.model.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One cell of one arm in one phase; `entry` is its part of the report."""

    phase: str
    arm: str
    title: str
    cell: str
    default: bool
    entry: ProgramReport

    @property
    def judged(self) -> bool:
        return self.entry.totals is not None

    @property
    def rows(self) -> tuple[CollectiveRow, ...]:
        """Its collectives in program order."""
        return self.entry.collectives


def programs(report: Report) -> Iterator[Program]:
    """All compiled programs, by phase and arm, the default cell first."""
    for phase, phase_report in report.phases.items():
        for arm, entries in phase_report.arms.items():
            title = report.arms[arm].title
            for index, entry in enumerate(entries.compiled):
                yield Program(
                    phase=phase, arm=arm, title=title_of(entry, title), cell=entry.cell, default=not index, entry=entry
                )


def compared_programs(report: Report, phase: str) -> list[Program]:
    """The compared programs of a phase: one of each arm, in the report's order."""
    cells = report.phases[phase].compared_cells
    return [
        program
        for program in programs(report)
        if program.phase == phase and program.judged and cells.get(program.arm) == program.cell
    ]


def titles(report: Report) -> dict[str, str]:
    """Arm -> its display name."""
    return {arm: entry.title for arm, entry in report.arms.items()}


def num_devices(report: Report) -> int:
    return len(report.mesh.devices)
