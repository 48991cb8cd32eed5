"""The report's section on time: step times, exposed communication, and how much of it is avoidable."""

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
    Section,
    Sentence,
    Shown,
    Table,
    Tone,
    Widget,
    amount_cell,
    number_columns,
)
from compare.render.html import read_static
from compare.render.picture import Picture, inline_picture
from compare.render.terminal import SOFT_HYPHEN
from compare.render.time.diff import differences
from compare.render.time.measured_power import power_sentences
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
    program_table,
    sentence,
    timings_by_phase,
    waits,
)
from compare.render.time.work import work_blocks
from compare.render.units import capitalize_first, time_text
from compare.report.model.report import Report

SCRIPT = read_static("strip_draw.js", "strip_move.js")
"""The page's only script: our own, without any program's text."""

SCRIPT_HASH = "sha256-" + b64encode(sha256(SCRIPT.encode()).digest()).decode("ascii")
"""Its hash in the page's content security policy."""

STILL = "-strip"
"""Suffix of the names of figures that replace the strip where scripts do not run."""

_CPU = f"{GROUPS[2]}: order, overlap and waiting, never the speed of a TPU"

_MOST_PLACES = 8
"""Listed waits."""

_LONGEST = 2
"""Avoidable waits per default program in a sentence."""

_TIMES = {
    "step_ns": "step",
    "compute_ns": "compute",
    "communication_ns": f"communi{SOFT_HYPHEN}cation",
    "hidden_ns": "hidden",
    "exposed_ns": "exposed",
}
_VERDICTS = ("inherent", "inflated", "induced")


def time_section(
    report: Report, *, strips: Sequence[Strip] = (), below_strips: Blocks = (), pictures: Sequence[Picture] = ()
) -> Section:
    """Every phase with times; strips, what is shown below them, and pictures are for the page."""
    phases = timings_by_phase(report)
    return Section(
        anchor="time",
        title="time",
        link="time",
        lead="",
        blocks=tuple(_blocks(report, phases, strips=strips, below_strips=below_strips, pictures=pictures)),
    )


def _blocks(
    report: Report,
    phases: Mapping[str, list[ProgramTiming]],
    *,
    strips: Sequence[Strip],
    below_strips: Blocks,
    pictures: Sequence[Picture],
) -> Iterator[Block]:
    shown = [phase for phase, timings in phases.items() if timings or any(failures(report, phase))]
    if not shown:
        yield PageOnly((Sentence(ABSENT),))
        return
    yield PageOnly(
        (Sentence("How long a step is, and how much of it is exposed communication. Mean over devices and steps."),)
    )
    for phase in shown:
        yield from _phase(report, phase, phases[phase])
    copies = any(timing.times.copy_wait_ns for timings in phases.values() for timing in timings)
    unknown = any(timing.exposed("unknown") for timings in phases.values() for timing in timings)
    yield Widget(template="time_legend.html.j2", values={"unknown": unknown, "copies": copies})
    if strips:
        still = [inline_picture(picture) for picture in pictures if picture.name.endswith(STILL)]
        yield Widget(
            template="strips.html.j2",
            values={
                "phases": shown,
                "strips": _strips_json(strips),
                "still": still,
            },
        )
    yield from below_strips
    for phase in shown:
        if places := _waits(phase, phases[phase], strips=bool(strips)):
            yield places
    yield from _timeline_differences(report, phases, strips=bool(strips))
    others = [inline_picture(picture) for picture in pictures if not picture.name.endswith(STILL)]
    if others:
        figures = Widget(template="figures.html.j2", values={"pictures": others})
        yield PageOnly((Fold(summary="More figures of time", blocks=(figures,)),))


def _phase(report: Report, phase: str, timings: Sequence[ProgramTiming]) -> Iterator[Block]:
    """Modelled and measured programs in separate tables."""
    for group, members in by_group(timings).items():
        blocks: Blocks = (*_group(phase, group, members), *work_blocks(phase, group, members))
        head = Heading(
            f"{capitalize_first(phase)}: time per step, {group}", anchor=f"time-{phase}-{group.replace(' ', '-')}"
        )
        yield Details(
            (head, Fold(summary=_CPU, blocks=blocks, terminal=Shown.BLOCKS)) if group == GROUPS[2] else (head, *blocks)
        )
    for words in failures(report, phase):
        yield Sentence(words, Tone.WARNING)


def _group(phase: str, group: str, members: Sequence[ProgramTiming]) -> Iterator[Block]:
    default = [timing for timing in members if timing.default] or members
    groups = labels(members)
    for words, names in groups.items():
        whose = f" ({', '.join(names)})" if len(groups) > 1 else ""
        yield Sentence(f"{capitalize_first(words)}{whose}", Tone.SOFT)
    yield PageOnly(
        tuple(Sentence(f"{timing.title} {timing.cell}: {sentence(timing)}.", Tone.STRONG) for timing in default)
    )
    yield Widget(
        template="time_chart.html.j2",
        values={
            "lines": [(timing, _parts(timing)) for timing in members],
            "widest": max([timing.times.step_ns or 0 for timing in members] + [1]),
        },
    )
    notes = dict.fromkeys(
        f"{timing.title} {timing.cell}: {note}" for timing in members for note in timing.section.notes
    )
    below = PageOnly(tuple(Sentence(words, Tone.SOFT) for words in notes))
    yield Fold(summary="All times of a step", blocks=(_table(phase, group, members), below), terminal=Shown.BLOCKS)
    for timing in members:
        if timing.default and (words := _longest_waits(timing)):
            yield Sentence(words)
        if timing.section.power is not None:
            yield from (
                Sentence(f"{timing.title} {timing.cell}: {words}") for words in power_sentences(timing.section.power)
            )
        if group == GROUPS[2] and (words := _waiting_words(timing)):
            yield Sentence(f"{timing.title} {timing.cell}: {words}")


def _parts(timing: ProgramTiming) -> list[tuple[str, float]]:
    """The parts of one program's bar, from the left: (style, ns)."""
    exposed = {verdict: timing.exposed(verdict) for verdict in VERDICTS}
    copies = ("copies", timing.times.copy_wait_ns)
    parts = [("computes", timing.times.compute_ns), *exposed.items(), copies, ("idle", _idle(timing))]
    return [(name, amount) for name, amount in parts if amount]


def _idle(timing: ProgramTiming) -> float | None:
    return timing.idle_ns if timing.times.compute_ns is not None else None


def _table(phase: str, group: str, members: Sequence[ProgramTiming]) -> Table:
    verdicts = [Column(heading=f"exposed {name}", style=name) for name in _VERDICTS]
    more = ("exposed unknown", *_copies(members), "neither", "waiting for others")
    columns = (*number_columns(*_TIMES.values()), *verdicts, *number_columns(*more, page_only=True))
    return program_table(f"Times of {phase}, {group}", members, columns, lambda timing: _cells(timing, members))


def _copies(members: Sequence[ProgramTiming]) -> list[str]:
    """The column of waits for local copies, where any program shows some."""
    return ["waiting for local copies"] * any(timing.times.copy_wait_ns is not None for timing in members)


def _cells(timing: ProgramTiming, members: Sequence[ProgramTiming]) -> Iterator[Cell]:
    for name in _TIMES:
        amount = getattr(timing.times, name)
        yield amount_cell(time_text(amount), amount)
    for name in VERDICTS:
        yield amount_cell(time_text(timing.exposed(name)), timing.exposed(name), style=name)
    for amount in (*[timing.times.copy_wait_ns for _ in _copies(members)], _idle(timing), timing.times.wait_ns):
        yield amount_cell(time_text(amount), amount)


def _longest_waits(timing: ProgramTiming) -> str:
    """A sentence on the largest exposed times of inflated or induced bytes."""
    longest = sorted((wait for wait in waits(timing) if wait.avoidable_ns), key=lambda wait: -wait.avoidable_ns)[
        :_LONGEST
    ]
    places = [f"{time_text(wait.avoidable_ns)} {wait.place} ({', '.join(wait.causes)})" for wait in longest]
    return (
        f"Largest avoidable exposed communication, {timing.title} {timing.cell}: {'; '.join(places)}" if places else ""
    )


def _waiting_words(timing: ProgramTiming) -> str:
    """What only CPU devices show: waiting for other devices, and for the host."""
    parts = []
    if timing.times.communication_ns and timing.times.wait_ns is not None:
        parts.append(f"{time_text(timing.times.wait_ns)} of its communication is waiting for other devices")
    if timing.times.compute_ns is not None and timing.idle_ns:
        parts.append(f"{time_text(timing.idle_ns)} of its step is neither (a step begins on the host)")
    return "; ".join(parts)


def _waits(phase: str, timings: Sequence[ProgramTiming], *, strips: bool) -> Widget | None:
    """The waits of the default programs, side by side, longest first."""
    shown = [timing for timing in timings if timing.default] or next(iter(by_group(timings).values()), [])
    rows: dict[tuple[str, str, str], list[Wait | None]] = {}
    for column, timing in enumerate(shown):
        for wait in waits(timing):
            rows.setdefault(wait.key, [None] * len(shown))[column] = wait
    places = sorted((_place(row) for row in rows.values()), key=lambda place: -place.total_ns)
    if not places:
        return None
    more = places[_MOST_PLACES:]
    return Widget(
        template="waits.html.j2",
        values={
            "phase": phase,
            "shown": shown,
            "places": places[:_MOST_PLACES],
            "widest": places[0].total_ns,
            "more": len(more),
            "more_ns": max((place.total_ns for place in more), default=0),
            "strips": strips,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WaitRow:
    """One line of the list: the wait of each program, and the causes of avoidable waits."""

    wait: Wait
    """The first program's wait; all have the same scope, kind and axes."""
    total_ns: float
    """The longest wait of any program."""
    row: tuple[tuple[Wait, str] | None, ...]
    """For each program its wait, and the target for the strip's script."""
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
    """The target for the strip's script, as JSON."""
    timing = wait.timing
    return json.dumps({"phase": timing.phase, "arm": timing.arm, "cell": timing.cell, "names": wait.names})


def _timeline_differences(report: Report, phases: Iterable[str], *, strips: bool) -> Iterator[Block]:
    pairs = [(phase, pair) for phase in phases for pair in differences(report, phase)]
    if pairs:
        widgets = (
            Widget(template="time_diff.html.j2", values={"found": pair, "name": phase, "strips": strips})
            for phase, pair in pairs
        )
        yield PageOnly((Heading("Timelines compared"), *widgets))


def _strips_json(strips: Sequence[Strip]) -> Markup:
    """Phase -> its strips, as JSON for a script element; `<` is escaped, so that no name can close it."""
    phases: dict[str, list[object]] = {}
    for strip in strips:
        phases.setdefault(strip.phase, []).append(strip.to_json())
    text = json.dumps(phases, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
