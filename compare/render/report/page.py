"""`report.html`: one file that needs nothing else; its only script draws the strip, and is known by its hash.

Whatever a program wrote (names, scopes, source lines, HLO, errors) reaches the page through Jinja's escaping only, or
as JSON that no script element ends in.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from compare.render import units
from compare.render.figures import Picture
from compare.render.glossary import GLOSSARY
from compare.render.html import environment, read_static
from compare.render.programs import Program, compared, programs, titles
from compare.render.report.attribution import pair_lines, showed_lines, whose
from compare.render.report.findings import (
    NOT_COMPARED,
    Finding,
    asides,
    control_text,
    each_arm,
    findings,
    gone_in,
    heading,
    left_out,
    sources,
)
from compare.render.report.ici_dcn import between_slices, network_words
from compare.render.report.missing_notes import is_short, marked, shortfalls
from compare.render.report.origins import origin_lines, origin_table
from compare.render.report.program_facts import facts
from compare.render.report.step_walkthrough import Move, moves, story
from compare.render.report.torus import torus
from compare.render.time.page import SCRIPT, SCRIPT_HASH, inlined, time_part
from compare.render.time.sentence import time_sentence
from compare.render.time.timeline_strip import Strip
from compare.report.controls import what

Report = Mapping[str, Any]

_BACKTICKS = re.compile(r"`([^`]+)`")

HLO_LINES, HLO_CHARACTERS = 2, 1500
"""Of a group of alike instructions, how many lines are shown, and how much of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the page that a slice adds."""

    anchor: str
    title: str
    html: Markup
    """What stands under the title."""


def page(
    report: Report,
    *,
    pictures: Sequence[Picture] = (),
    time_pictures: Sequence[Picture] = (),
    strips: Sequence[Strip] = (),
    sections: Sequence[Section] = (),
) -> str:
    """The whole page as HTML; `strips` are the timelines that it shows, `sections` what slices add."""
    template = _environment().get_template("page.html.j2")
    return template.render(
        report=report,
        time_sentence=time_sentence(report),
        case=report["case"],
        style=read_static("page.css"),
        phases=[_phase(report, phase) for phase in report["phases"]],
        torus=torus(report["mesh"]),
        programs=list(programs(report)),
        titles=titles(report),
        showed=showed_lines(report),
        sections=sections,
        time=time_part(report, strips=strips, pictures=time_pictures),
        script=Markup(SCRIPT),
        script_hash=SCRIPT_HASH,
        pictures=[inlined(one) for one in pictures],
        glossary=GLOSSARY,
    )


def _environment() -> Environment:
    made = environment()
    made.filters |= {
        "bytes": _kept(units.bytes_text), "exact": units.exact_text, "axes": units.axes_text,
        "times": _kept(units.times_text), "kept": units.kept, "coded": _coded, "counted": units.counted,
        "facts": facts, "network": network_words, "time": _kept(units.time_text), "capitalize_first": _capitalized,
        "cell": what,
    }  # fmt: skip
    made.globals |= {"ratio": _kept(units.ratio_text), "line_ratio": _kept(_line_ratio)}
    return made


def _kept(text: Callable[..., str]) -> Callable[..., str]:
    """The same words, with no line ending inside them."""
    return lambda *values: text(*values).replace(" ", units.KEPT)


def _line_ratio(found: Report, line: Mapping[str, Any]) -> str:
    return marked(units.ratio_text(line["ratio"], line["qualifier"]), short=is_short(found, line))


def _capitalized(words: str) -> str:
    return words[:1].upper() + words[1:]


def _coded(words: str) -> Markup:
    """Escaped, with what stands in backticks as code."""
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(units.kept(words)))))


def _phase(report: Report, phase: str) -> dict[str, Any]:
    """What the page says of one phase."""
    found = report["phases"][phase]
    apart = findings(found)
    shown = compared(report, phase)
    widest = max([line["wire_bytes"] or 0 for line in found["headline"]] + [found["inherent_total"], 1])
    return {
        "name": phase,
        "found": found,
        "notes": list(found.get("notes", ())),
        "short": list(shortfalls(report, phase)),
        "left_out": NOT_COMPARED if left_out(found) else "",
        "widest": widest,
        "apart": widest / max(1, min([line["wire_bytes"] for line in found["headline"] if line["wire_bytes"]],
                                     default=widest)),
        "told": [_finding(one, report, phase, shown) for one in apart.told],
        "small": [_finding(one, report, phase, shown) for one in apart.small],
        "alike": [_finding(one, report, phase, shown) for one in apart.alike],
        "heading": heading(report, phase),
        "origins": origin_lines(report, phase),
        "passes": origin_table(report, phase),
        "whose": whose(report, phase),
        "pairs": pair_lines(report, phase),
        "asides": [*between_slices(report, phase), *asides(report, phase)],
        "story": story(report, phase),
        "served": [
            (asked, [(program, program.entry["served"][number]) for program in programs(report)
                     if program.phase == phase and program.judged])
            for number, asked in enumerate(found["inherent"])
        ],
    }  # fmt: skip


def _finding(one: Finding, report: Report, phase: str, shown: Sequence[Program]) -> dict[str, Any]:
    """A difference and its evidence: contract rows, and for each arm the HLO."""
    found = report["phases"][phase]
    return {
        "entry": one.first,
        "excess": one.excess_bytes,
        "arms": each_arm(one, titles=titles(report)),
        "control": control_text(one.first, found),
        "gone_in": gone_in(one.first),
        "sources": sources(one.first, shown),
        "asked": [found["inherent"][number] for number in one.first["serves"]],
        "near": _near(one.first, found["inherent"]),
        "evidence": [proof for entry in one.entries for proof in _evidence(entry, shown)],
    }


def _near(entry: Mapping[str, Any], contract: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Contract rows of the same scope, which an induced collective might be taken for."""
    return [row for row in contract if row["scope"] == entry["scope"]]


def _evidence(entry: Mapping[str, Any], shown: Sequence[Program]) -> Iterator[dict[str, Any]]:
    """For one arm's part of a difference its moves, with a few lines of HLO each."""
    program = next((one for one in shown if one.arm == entry["arm"]), None)
    if program is None:
        return
    names = set(entry["names"])
    for move in moves(row for row in program.rows if row["name"] in names):
        yield {
            "program": program,
            "move": move,
            "bytes": sum(row["causes"].get(entry["cause"], 0) for row in move.rows),
            "hlo": [_cut(row["hlo"]) for row in move.rows[:HLO_LINES]],
            "sources": _sources(move),
        }


def _cut(line: str) -> str:
    text = line.strip()
    return text if len(text) <= HLO_CHARACTERS else text[:HLO_CHARACTERS] + " …"


def _sources(move: Move) -> list[str]:
    return list(dict.fromkeys(row["source_line"] for row in move.rows if row["source_line"]))
