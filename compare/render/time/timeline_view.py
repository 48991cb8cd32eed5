"""A program's timeline with the verdicts of its collectives: the input of trace, tables and strips."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS
from compare.report.model.codec import copy_fields
from compare.report.model.energy import StepEnergy
from compare.report.model.report import Report
from compare.timeline.timeline import Timeline

Key = tuple[str, str, str]
"""Arm, phase, cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTimeline:
    """One program's timeline; `shares` has a row for each collective: fractions by verdict, which add up to 1."""

    phase: str
    arm: str
    title: str
    """The arm's display name."""
    cell: str
    default: bool
    """Whether it is the arm's default compiled program."""
    timeline: Timeline
    shares: pd.DataFrame
    """Columns collective, inherent, inflated, induced, verdict."""
    platform: str | None = None
    """Of a measured program: `cpu` or `tpu`."""
    energy: StepEnergy | None = None
    """Of a modelled step."""

    @property
    def name(self) -> str:
        return f"{self.title} {self.phase} {self.cell}"

    @property
    def label(self) -> str:
        return figure_label(self.timeline.source, self.timeline.label)


def figure_label(source: str, label: str) -> str:
    """The label of a figure; a model's always says that it is not measured."""
    return f"{label}, not measured" if source == "modelled" and "not measured" not in label else label


def program_timelines(report: Report, timelines: Mapping[Key, Timeline]) -> list[ProgramTimeline]:
    """The programs of a report with a timeline, by phase and arm: default, controls, witnesses, measured ones."""
    timelines_of_report = []
    for phase, entries in report.phases.items():
        for arm, programs in entries.arms.items():
            for program in programs:
                timeline = timelines.get((arm, phase, program.cell))
                if timeline is not None:
                    timelines_of_report.append(
                        copy_fields(
                            program,
                            ProgramTimeline,
                            phase=phase,
                            arm=arm,
                            title=report.arms[arm].title,
                            default=program is programs.default,
                            timeline=timeline,
                            shares=verdict_shares(program.collectives, axes=report.mesh.groups),
                        )
                    )
    return timelines_of_report


def middle_step(timeline: Timeline) -> tuple[int | None, float, float]:
    """(number, start, end) of the step of median length; without steps, the full span."""
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
    """Fractions of one collective's bytes by verdict."""

    verdict: str
    parts: tuple[float, float, float]
    """inherent, inflated, induced; all 0 where unknown."""

    @property
    def words(self) -> str:
        """`80 % inherent, 20 % inflated`; the verdict alone where it has all bytes."""
        parts = [f"{100 * part:.0f} % {name}" for name, part in zip(VERDICTS, self.parts, strict=True) if part]
        return ", ".join(parts) if len(parts) > 1 else self.verdict


NO_SHARE = Share(verdict=UNKNOWN_VERDICT, parts=(0.0, 0.0, 0.0))


def shares_by_name(shares: pd.DataFrame) -> Mapping[str, Share]:
    """Collective -> its share; NaN fractions are unknown."""
    columns = [shares[name] for name in ("collective", "verdict", *VERDICTS)]
    table = {}
    for name, verdict, *parts in zip(*columns, strict=True):
        inherent, inflated, induced = map(float, parts)
        known = not math.isnan(inherent + inflated + induced)
        table[str(name)] = Share(verdict=str(verdict), parts=(inherent, inflated, induced)) if known else NO_SHARE
    return table


def assign_lanes(starts: Sequence[int], ends: Sequence[int], *, nest: bool) -> list[int]:
    """The lane of each interval, from 0, so that none overlap in a lane; with `nest` they may be nested.

    starts and ends: in order of start, longer first among equal starts.
    """
    open_ends: list[list[int]] = []
    return [_lane(open_ends, start, end, nest=nest) for start, end in zip(starts, ends, strict=True)]


def _lane(open_ends: list[list[int]], start: int, end: int, *, nest: bool) -> int:
    """The first lane with room; `open_ends`: the ends of the running intervals in each, innermost last."""
    for lane, running in enumerate(open_ends):
        while running and running[-1] <= start:
            running.pop()
        if not running or (nest and end <= running[-1]):
            running.append(end)
            return lane
    open_ends.append([end])
    return len(open_ends) - 1
