"""The verdict on what a profile shows: its program judged by a contract, and the time of each verdict.

No run folder: the program is the one that the profile carries, or its HLO beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd
from rich.console import Console

from compare.diff.own.api import collectives, judge
from compare.diff.own.case_contract import CaseContract
from compare.diff.own.program_verdict import ProgramVerdict
from compare.hlo.text.metadata import SourceNames
from compare.metrics.collectives import collective_rows
from compare.metrics.source_places import shorten
from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.verdicts import by_verdict
from compare.render.plain_table import plain_table
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.units import axes_text, time_text
from compare.report.model.timing import CollectiveTimes, VerdictTimes
from compare.report.rows import collective_row
from compare.timeline.programs import bare_names, select_program
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.step_clipping import clip_to_steps
from compare.timeline.tracks.tracks import DeviceTracks
from meshes.process.one_line import plain

_MOST = 12
"""Collectives in the terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileVerdict:
    """One program of a profile; times are of one device and execution, means over both."""

    program: str
    contract: str
    """Of which case."""
    totals: Mapping[str, int]
    """Bytes of one execution, mean over devices, as in a report."""
    by_verdict: Mapping[str, VerdictTimes]
    collectives: tuple[CollectiveTimes, ...]
    """What is exposed longest first."""
    lines: tuple[str, ...]
    """What the contract requires, what of it is not served, causes and remedies."""
    sources: Mapping[str, str]
    """Collective -> line of source, where the program says."""


def judge_profile(
    timeline: Timeline, program: str, text: str, contract: CaseContract, names: SourceNames
) -> ProfileVerdict:
    """program: the profile's name; text: its compiled HLO.

    `ValueError`, one line, where the contract or the map do not fit.
    """
    table = collectives(text, axes=contract.axes, scopes=names.scope_map, owns=names.owns)
    verdict = judge(table, contract)
    tracks = DeviceTracks.of(_without_prefix(select_program(timeline, program), program))
    shares = verdict_shares([collective_row(row) for row in verdict.rows], axes=contract.axes)
    cut = clip_to_steps(tracks)
    case = contract.case
    return ProfileVerdict(
        program=program,
        contract=f"{case.model.name}, {case.phase}, batch {case.batch}, seq {case.seq}, on {case.mesh.name}",
        totals=verdict.totals,
        by_verdict=by_verdict(tracks, cut, shares),
        collectives=collective_rows(tracks, cut, {}, shares, {}),
        lines=tuple(verdict.lines()),
        sources=_sources(verdict),
    )


def _sources(verdict: ProgramVerdict) -> dict[str, str]:
    rows = [row.collective for row in verdict.rows]
    return {row.name: row.source_line for row in rows if row.source_line}


def _without_prefix(timeline: Timeline, program: str) -> Timeline:
    """With the program's own names of collectives, where another program of the profile has the same ones."""
    names = timeline.events["collective"].astype(str).str.removeprefix(f"{program}/")
    return replace(timeline, events=timeline.events.assign(collective=pd.Categorical(names)))


def print_verdict(verdict: ProfileVerdict, *, out: Console | None = None) -> None:
    """Print what of the exposed time the contract requires, the collectives with their verdicts, and the bytes."""
    out = out or console()
    width = text_width(out)
    name = plain(bare_names([verdict.program])[verdict.program])
    parts = [
        f"{time_text(times.exposed_ns)} {words}" for words, times in verdict.by_verdict.items() if times.exposed_ns
    ]
    exposed = f"exposed communication of an execution: {', '.join(parts)}" if parts else "nothing exposed"
    out.print()
    out.print(wrap_prose(f"{name} against {plain(verdict.contract)}: {exposed}", width=width, style="bold"))
    table = plain_table(("collective", "scope", "verdict", "source line"), ("count", "exposed"))
    for row in verdict.collectives[:_MOST]:
        table.add_row(
            f"{plain(row.kind)} {axes_text(plain(row.axes))}",
            plain(row.scope),
            f"{row.verdict}, {row.cause}" if row.cause else row.verdict,
            shorten(plain(verdict.sources.get(row.collective, "?")), most=28),
            f"{row.executions:,.4g} ×",
            time_text(row.exposed_ns),
        )
    if verdict.collectives:
        out.print(table)
    for line in verdict.lines:
        out.print(wrap_prose(line, width=width))
