"""What the report says of time: how long a step is, what it waits for, and whether that was needed."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from markupsafe import Markup

from compare.render.blocks import (
    Block,
    Blocks,
    Cell,
    Column,
    Details,
    Fold,
    Heading,
    PageOnly,
    Row,
    Section,
    Sentence,
    Shown,
    Table,
    Tone,
    Widget,
)
from compare.render.html import read_static
from compare.render.picture import Picture, inline_picture
from compare.render.terminal import SOFT_HYPHEN
from compare.render.time.diff import differences
from compare.render.time.timeline_strip import Strip
from compare.render.time.timing_section import (
    ABSENT,
    GROUPS,
    VERDICTS,
    ProgramTiming,
    Wait,
    by_group,
    failures,
    labels,
    sentence,
    timings_by_phase,
    waits,
)
from compare.render.units import capitalize_first, time_text
from compare.report.model.report import Report

SCRIPT = read_static("strip_draw.js", "strip_move.js")
"""The page's only script: our own, with nothing of a program in it."""

SCRIPT_HASH = "sha256-" + b64encode(sha256(SCRIPT.encode()).digest()).decode("ascii")
"""By which the page's content security policy knows it."""

STILL = "-strip"
"""How the names of figures end that stand in for the strip where scripts do not run."""

_CPU = f"{GROUPS[2]}: order, overlap and waiting, never the speed of a TPU"

_MOST_PLACES = 8
"""Where programs wait: the places that are listed."""

_LONGEST = 2
"""Avoidable waits of each default program that a sentence names."""

_TIMES = {"step_ns": "step", "compute_ns": "compute", "communication_ns": f"communi{SOFT_HYPHEN}cation",
          "hidden_ns": "hidden", "exposed_ns": "exposed"}  # fmt: skip
_VERDICTS = ("inherent", "inflated", "induced")


def time_section(report: Report, *, strips: Sequence[Strip] = (), pictures: Sequence[Picture] = ()) -> Section:
    """Every phase that has times; strips and pictures are what a page shows of them."""
    phases = timings_by_phase(report)
    return Section(
        anchor="time",
        title="time",
        link="time",
        lead="",
        blocks=tuple(_blocks(report, phases, strips=strips, pictures=pictures)),
    )


def _blocks(
    report: Report, phases: Mapping[str, list[ProgramTiming]], *, strips: Sequence[Strip], pictures: Sequence[Picture]
) -> Iterator[Block]:
    shown = [phase for phase, found in phases.items() if found or any(failures(report, phase))]
    if not shown:
        yield PageOnly((Sentence(ABSENT),))
        return
    yield PageOnly((Sentence("How long a step is, and how much of it is exposed communication. Mean over devices and"
                             " steps."),))  # fmt: skip
    for phase in shown:
        yield from _phase(report, phase, phases[phase])
    unknown = any(one.exposed("unknown") for phase in phases.values() for one in phase)
    yield Widget(template="time_legend.html.j2", values={"unknown": unknown})
    if strips:
        still = [inline_picture(one) for one in pictures if one.name.endswith(STILL)]
        yield Widget(template="strips.html.j2", values={
            "phases": shown, "strips": _embedded(strips), "still": still,
        })  # fmt: skip
    for phase in shown:
        if places := _waits(phase, phases[phase], strips=bool(strips)):
            yield places
    yield from _timeline_differences(report, phases, strips=bool(strips))
    others = [inline_picture(one) for one in pictures if not one.name.endswith(STILL)]
    if others:
        figures = Widget(template="figures.html.j2", values={"pictures": others})
        yield PageOnly((Fold(summary="More figures of time", blocks=(figures,)),))


def _phase(report: Report, phase: str, found: Sequence[ProgramTiming]) -> Iterator[Block]:
    """Modelled and measured programs apart: they never stand in one table."""
    for group, members in by_group(found).items():
        blocks: Blocks = tuple(_group(phase, group, members))
        head = Heading(
            f"{capitalize_first(phase)}: time per step, {group}", anchor=f"time-{phase}-{group.replace(' ', '-')}"
        )
        yield Details((head, Fold(summary=_CPU, blocks=blocks, terminal=Shown.BLOCKS)) if group == GROUPS[2]
                      else (head, *blocks))  # fmt: skip
    for words in failures(report, phase):
        yield Sentence(words, Tone.WARNING)


def _group(phase: str, group: str, members: Sequence[ProgramTiming]) -> Iterator[Block]:
    default = [one for one in members if one.default] or members
    groups = labels(members)
    for words, names in groups.items():
        whose = f" ({', '.join(names)})" if len(groups) > 1 else ""
        yield Sentence(f"{capitalize_first(words)}{whose}", Tone.SOFT)
    yield PageOnly(tuple(Sentence(f"{one.title} {one.cell}: {sentence(one)}.", Tone.STRONG) for one in default))
    yield Widget(template="time_chart.html.j2", values={
        "lines": [(one, _parts(one)) for one in members],
        "widest": max([one.times.step_ns or 0 for one in members] + [1]),
    })  # fmt: skip
    notes = dict.fromkeys(f"{one.title} {one.cell}: {note}" for one in members for note in one.section.notes)
    below = PageOnly(tuple(Sentence(words, Tone.SOFT) for words in notes))
    yield Fold(summary="All times of a step", blocks=(_table(phase, group, members), below), terminal=Shown.BLOCKS)
    for one in members:
        if one.default and (words := _longest(one)):
            yield Sentence(words)
        if group == GROUPS[2] and (words := _beside(one)):
            yield Sentence(f"{one.title} {one.cell}: {words}")


def _parts(one: ProgramTiming) -> list[tuple[str, float]]:
    """The bar of one program: style and ns, from the left."""
    exposed = {verdict: one.exposed(verdict) for verdict in VERDICTS}
    parts = [("computes", one.times.compute_ns), *exposed.items(), ("idle", _idle(one))]
    return [(name, amount) for name, amount in parts if amount]


def _idle(one: ProgramTiming) -> float | None:
    return one.idle_ns if one.times.compute_ns is not None else None


def _table(phase: str, group: str, members: Sequence[ProgramTiming]) -> Table:
    verdicts = [Column(heading=f"exposed {name}", style=name) for name in _VERDICTS]
    more = ("exposed unknown", "neither", "waiting for others")
    return Table(
        name=f"Times of {phase}, {group}",
        columns=(
            Column(heading="program", prose=True), *(Column(heading=words) for words in _TIMES.values()), *verdicts,
            *(Column(heading=words, page_only=True) for words in more),
        ),
        rows=tuple(Row(name=one.title, code=one.cell, cells=tuple(_cells(one))) for one in members),
    )  # fmt: skip


def _cells(one: ProgramTiming) -> Iterator[Cell]:
    for name in _TIMES:
        amount = getattr(one.times, name)
        yield Cell(time_text(amount), style="" if amount else "zero")
    for name in VERDICTS:
        yield Cell(time_text(one.exposed(name)), style=name if one.exposed(name) else "zero")
    for amount in (_idle(one), one.times.wait_ns):
        yield Cell(time_text(amount), style="" if amount else "zero")


def _longest(one: ProgramTiming) -> str:
    """The largest exposed times of inflated or induced bytes."""
    found = sorted((wait for wait in waits(one) if wait.avoidable_ns), key=lambda wait: -wait.avoidable_ns)[:_LONGEST]
    places = [f"{time_text(wait.avoidable_ns)} {wait.place} ({', '.join(wait.causes)})" for wait in found]
    return f"Largest avoidable exposed communication, {one.title} {one.cell}: {'; '.join(places)}" if places else ""


def _beside(one: ProgramTiming) -> str:
    """What the table has no column for, and CPU devices show: waiting for each other, and for the host."""
    parts = []
    if one.times.communication_ns and one.times.wait_ns is not None:
        parts.append(f"{time_text(one.times.wait_ns)} of its communication is waiting for other devices")
    if one.times.compute_ns is not None and one.idle_ns:
        parts.append(f"{time_text(one.idle_ns)} of its step is neither (a step begins on the host)")
    return "; ".join(parts)


def _waits(phase: str, found: Sequence[ProgramTiming], *, strips: bool) -> Widget | None:
    """Where the default programs wait, side by side, the longest first."""
    shown = [one for one in found if one.default] or next(iter(by_group(found).values()), [])
    rows: dict[tuple[str, str, str], list[Wait | None]] = {}
    for column, one in enumerate(shown):
        for wait in waits(one):
            rows.setdefault(wait.key, [None] * len(shown))[column] = wait
    places = sorted((_place(row) for row in rows.values()), key=lambda place: -place.total_ns)
    if not places:
        return None
    more = places[_MOST_PLACES:]
    return Widget(template="waits.html.j2", values={
        "phase": phase, "shown": shown, "places": places[:_MOST_PLACES], "widest": places[0].total_ns,
        "more": len(more), "more_ns": max((place.total_ns for place in more), default=0), "strips": strips,
    })  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _WaitRow:
    """One line of the list: a part for each program, and why any of them waits for more than was needed."""

    wait: Wait
    """The first program's; its place is that of all."""
    total_ns: float
    """The longest."""
    row: tuple[tuple[Wait, str] | None, ...]
    """For each program its wait, and what the strip's script is to look for."""
    causes: tuple[str, ...]
    source_lines: tuple[str, ...]


def _place(row: Sequence[Wait | None]) -> _WaitRow:
    present = [wait for wait in row if wait]
    needless = [wait for wait in present if wait.avoidable_ns]
    return _WaitRow(
        wait=present[0],
        total_ns=max(wait.total_ns for wait in present),
        row=tuple((wait, _target(wait)) if wait else None for wait in row),
        causes=tuple(dict.fromkeys(cause for wait in needless for cause in wait.causes)),
        source_lines=tuple(dict.fromkeys(line for wait in needless for line in wait.source_lines)),
    )


def _target(wait: Wait) -> str:
    """What the strip's script is to look for."""
    one = wait.timing
    return json.dumps({"phase": one.phase, "arm": one.arm, "cell": one.cell, "names": wait.names})


def _timeline_differences(report: Report, phases: Iterable[str], *, strips: bool) -> Iterator[Block]:
    found = [(phase, one) for phase in phases for one in differences(report, phase)]
    if found:
        widgets = (Widget(template="time_diff.html.j2", values={"found": one, "name": phase, "strips": strips})
                   for phase, one in found)  # fmt: skip
        yield PageOnly((Heading("Timelines compared"), *widgets))


def _embedded(strips: Sequence[Strip]) -> Markup:
    """Phase -> its strips, as JSON that stands in a script element: no `<` of a program's can end that."""
    phases: dict[str, list[object]] = {}
    for strip in strips:
        phases.setdefault(strip.phase, []).append(strip.to_json())
    text = json.dumps(phases, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
