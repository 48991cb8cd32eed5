"""The page's comparison of two timelines: where one communicates longer, and what only one of them does."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from compare.render.time.timeline_view import figure_label
from compare.render.time.timing_section import GROUPS
from compare.render.units import time_text
from compare.report.model.report import PhaseReport, Report
from compare.report.model.timing import (
    ScopeTimeDifference,
    Side,
    TimeDifference,
    TotalTimeDifference,
    UnmatchedCollective,
)

_MOST = 12
"""Places and collectives that are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSide:
    """One of the two programs, by the name that readers know."""

    arm: str
    cell: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedRow:
    """A collective of one side only: that side's title, and where the strip can show it, as JSON for its script."""

    collective: UnmatchedCollective
    title: str
    show: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePair:
    """Two timelines compared, as the page shows them."""

    left: NamedSide
    right: NamedSide
    source: str
    labels: tuple[str, ...]
    """Of what was measured; a model's label stands in `source`."""
    sentence: str
    by_scope: tuple[ScopeTimeDifference, ...]
    more: int
    """Places that are not listed."""
    excess: tuple[UnmatchedRow, ...]
    more_excess: int
    notes: tuple[str, ...]


def differences(report: Report, phase: str) -> list[TimelinePair]:
    """Of a phase: the compared programs as modelled, then each pair that was measured alike."""
    return [_pair(report, phase, name, found) for name, found in report.phases[phase].time_differences.items()]


def _pair(report: Report, phase: str, name: str, found: TimeDifference) -> TimelinePair:
    sides = {"left": _side(report, found.left), "right": _side(report, found.right)}
    measured = name != "modelled"
    source = "measured" if measured else "modelled"
    labels = tuple(dict.fromkeys(figure_label(source, label) for label in found.labels.values()))
    return TimelinePair(
        **sides,
        source=_source(report.phases[phase], found.left) if measured else "; ".join(labels),
        labels=labels if measured else (),
        sentence=_sentence(sides["left"], sides["right"], found.total),
        by_scope=found.by_scope[:_MOST],
        more=max(0, len(found.by_scope) - _MOST),
        excess=tuple(_row(row, sides[row.side], phase) for row in found.excess[:_MOST]),
        more_excess=max(0, len(found.excess) - _MOST),
        notes=tuple(_named(note, sides) for note in found.notes),
    )


def _side(report: Report, side: Side) -> NamedSide:
    title = report.arms[side.arm].title if side.arm in report.arms else side.arm
    return NamedSide(arm=side.arm, cell=side.cell, title=title)


def _source(phase: PhaseReport, side: Side) -> str:
    """`measured on CPU devices`: two labels, each with all that was reduced, are too long to stand first."""
    program = phase.arms[side.arm].profiles.get(side.cell)
    return GROUPS[2] if program and program.platform == "cpu" else GROUPS[0]


def _named(note: str, sides: Mapping[str, NamedSide]) -> str:
    """A note of one side, with the program's name for the side's."""
    side, _, words = note.partition(": ")
    return f"{sides[side].title} {sides[side].cell}: {words}" if side in sides else note


def _sentence(left_side: NamedSide, right_side: NamedSide, total: TotalTimeDifference) -> str:
    """`TorchXLA tpu communicates 62.0 ms a step longer than JAX tpu+gspmd, and waits 48.4 ms longer`."""
    left, right = (f"{side.title} {side.cell}" for side in (left_side, right_side))
    longer, exposed = total.difference_communication_ns, total.difference_exposed_ns
    if longer is None or exposed is None:
        return f"{left} against {right}: times are not known by device"
    if not longer and not exposed:
        return f"{left} and {right} communicate and wait equally long"
    if longer < 0:
        left, right, longer, exposed = right, left, -longer, -exposed
    waits = (
        f"waits {time_text(abs(exposed))} {'longer' if exposed > 0 else 'less'}" if exposed else "waits equally long"
    )
    return f"{right} communicates {time_text(longer)} a step longer than {left}, and {waits}"


def _row(row: UnmatchedCollective, side: NamedSide, phase: str) -> UnmatchedRow:
    show = {"phase": phase, "arm": side.arm, "cell": side.cell, "names": [row.collective]}
    return UnmatchedRow(collective=row, title=side.title, show=json.dumps(show))
