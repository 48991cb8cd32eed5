"""A timeline and whose it is, with the verdicts of its collectives: what the views of time are given."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from compare.report.model.report import Report
from compare.timing.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS, verdict_shares
from compare.timing.timeline import Timeline

Key = tuple[str, str, str]
"""Arm, phase, cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedProgram:
    """One program's timeline; `shares` has a row for each collective, with its parts by verdict, which add up to 1."""

    phase: str
    arm: str
    title: str
    """The arm's name, as readers know it."""
    cell: str
    default: bool
    """Whether it is the arm's default program, compiled: not a control, and not a measured one."""
    timeline: Timeline
    shares: pd.DataFrame
    """Columns collective, inherent, inflated, induced, verdict."""
    platform: str | None = None
    """Of one that was measured, what it ran on."""

    @property
    def name(self) -> str:
        return f"{self.title} {self.phase} {self.cell}"

    @property
    def label(self) -> str:
        return figure_label(self.timeline.source, self.timeline.label)


def figure_label(source: str, label: str) -> str:
    """A label as figures say it: a model's always says that it is one."""
    return f"{label}, not measured" if source == "modelled" and "not measured" not in label else label


def timed_programs(report: Report, timelines: Mapping[Key, Timeline]) -> list[TimedProgram]:
    """The programs of a report that have a timeline, by phase and arm: the default one, controls, measured ones."""
    found = []
    for phase, entries in report.phases.items():
        for arm, programs in entries.arms.items():
            for program in programs:
                timeline = timelines.get((arm, phase, program.cell))
                if timeline is not None:
                    found.append(TimedProgram(
                        phase=phase, arm=arm, title=report.arms[arm].title, cell=program.cell,
                        default=program is programs.default, timeline=timeline,
                        shares=verdict_shares(program.collectives, axes=report.mesh.groups), platform=program.platform,
                    ))  # fmt: skip
    return found


def middle_step(timeline: Timeline) -> tuple[int | None, float, float]:
    """Number, start and end of the step of the middle length; the whole span where there are no steps."""
    if timeline.steps.empty:
        ends = timeline.events["start_ns"] + timeline.events["duration_ns"]
        return None, timeline.events["start_ns"].min(), ends.max()
    ends = timeline.steps["start_ns"] + timeline.steps["duration_ns"]
    begins, ends = (
        timeline.steps["start_ns"].groupby(timeline.steps["step"]).min(),
        ends.groupby(timeline.steps["step"]).max(),
    )
    order = (ends - begins).sort_values(kind="stable").index
    number = int(order[(len(order) - 1) // 2])
    return number, begins[number], ends[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Parts of one collective's bytes by verdict."""

    verdict: str
    parts: tuple[float, float, float]
    """inherent, inflated, induced; all 0 where unknown."""

    @property
    def words(self) -> str:
        """`80 % inherent, 20 % inflated`; the verdict alone where there is nothing to split."""
        told = [f"{100 * part:.0f} % {name}" for name, part in zip(VERDICTS, self.parts, strict=True) if part]
        return ", ".join(told) if len(told) > 1 else self.verdict


NO_SHARE = Share(verdict=UNKNOWN_VERDICT, parts=(0.0, 0.0, 0.0))


def shares_by_name(found: pd.DataFrame) -> Mapping[str, Share]:
    """Collective -> its parts; what is NaN there is unknown."""
    columns = [found[name] for name in ("collective", "verdict", *VERDICTS)]
    table = {}
    for name, verdict, *parts in zip(*columns, strict=True):
        inherent, inflated, induced = map(float, parts)
        known = not math.isnan(inherent + inflated + induced)
        table[str(name)] = Share(verdict=str(verdict), parts=(inherent, inflated, induced)) if known else NO_SHARE
    return table


def assign_lanes(starts: Sequence[int], ends: Sequence[int], *, nest: bool) -> list[int]:
    """The lane of each interval, 0 first, so that in a lane none overlap; with `nest` one may lie inside another.

    starts and ends: in the order of starts, the longer first among those that start together.
    """
    open_ends: list[list[int]] = []
    return [_lane(open_ends, start, end, nest=nest) for start, end in zip(starts, ends, strict=True)]


def _lane(open_ends: list[list[int]], start: int, end: int, *, nest: bool) -> int:
    """The first lane with room; `open_ends` are the ends of what is still running in each, the innermost last."""
    for lane, running in enumerate(open_ends):
        while running and running[-1] <= start:
            running.pop()
        if not running or (nest and end <= running[-1]):
            running.append(end)
            return lane
    open_ends.append([end])
    return len(open_ends) - 1
