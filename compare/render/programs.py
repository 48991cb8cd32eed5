"""The programs of a report, one by one: every phase, arm and cell."""

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
    """Phase by phase, arm by arm, the default cell before the others."""
    for phase, found in report.phases.items():
        for arm, entries in found.arms.items():
            title = report.arms[arm].title
            for number, entry in enumerate(entries.compiled):
                yield Program(
                    phase=phase, arm=arm, title=title_of(entry, title), cell=entry.cell, default=not number, entry=entry
                )  # fmt: skip


def compared_programs(report: Report, phase: str) -> list[Program]:
    """The programs of a phase that its differences are about: one of each arm, in the report's order."""
    cells = report.phases[phase].compared_cells
    return [one for one in programs(report) if one.phase == phase and one.judged and cells.get(one.arm) == one.cell]


def titles(report: Report) -> dict[str, str]:
    """Arm -> the name that readers know it by."""
    return {arm: entry.title for arm, entry in report.arms.items()}


def num_devices(report: Report) -> int:
    return len(report.mesh.devices)
