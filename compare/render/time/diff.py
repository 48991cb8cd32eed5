"""The page's comparison of two timelines: where one communicates longer, and what only one of them runs."""

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
"""Scopes and collectives that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSide:
    """One of the two programs, with its display name."""

    arm: str
    cell: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedRow:
    """A collective of one side only: that side's title, and the target in the strip, as JSON for its script."""

    collective: UnmatchedCollective
    title: str
    show: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePair:
    """A comparison of two timelines, as the page shows it."""

    left: NamedSide
    right: NamedSide
    source: str
    labels: tuple[str, ...]
    """Labels of measured timelines; a model's label is in `source`."""
    sentence: str
    by_scope: tuple[ScopeTimeDifference, ...]
    more: int
    """Number of scopes that are not listed."""
    excess: tuple[UnmatchedRow, ...]
    more_excess: int
    notes: tuple[str, ...]


def differences(report: Report, phase: str) -> list[TimelinePair]:
    """The timeline pairs of a phase: the compared programs as modelled, then each pair measured alike."""
    return [
        _pair(report, phase, name, difference) for name, difference in report.phases[phase].time_differences.items()
    ]


def _pair(report: Report, phase: str, name: str, difference: TimeDifference) -> TimelinePair:
    sides = {"left": _side(report, difference.left), "right": _side(report, difference.right)}
    measured = name != "modelled"
    source = "measured" if measured else "modelled"
    labels = tuple(dict.fromkeys(figure_label(source, label) for label in difference.labels.values()))
    return TimelinePair(
        **sides,
        source=_source(report.phases[phase], difference.left) if measured else "; ".join(labels),
        labels=labels if measured else (),
        sentence=_sentence(sides["left"], sides["right"], difference.total),
        by_scope=difference.by_scope[:_MOST],
        more=max(0, len(difference.by_scope) - _MOST),
        excess=tuple(_row(row, sides[row.side], phase) for row in difference.excess[:_MOST]),
        more_excess=max(0, len(difference.excess) - _MOST),
        notes=tuple(_named(note, sides) for note in difference.notes),
    )


def _side(report: Report, side: Side) -> NamedSide:
    title = report.arms[side.arm].title if side.arm in report.arms else side.arm
    return NamedSide(arm=side.arm, cell=side.cell, title=title)


def _source(phase: PhaseReport, side: Side) -> str:
    """`measured on CPU devices`: shorter than two labels with all reductions."""
    program = phase.arms[side.arm].profiles.get(side.cell)
    return GROUPS[2] if program and program.platform == "cpu" else GROUPS[0]


def _named(note: str, sides: Mapping[str, NamedSide]) -> str:
    """A note of one side, with the program's name in place of `left` or `right`."""
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
