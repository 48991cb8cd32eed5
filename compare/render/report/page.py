"""`report.html`: one file that needs nothing else; its only script draws the strip, and is known by its hash.

Whatever a program wrote (names, scopes, source lines, HLO, errors) reaches the page through Jinja's escaping only, or
as JSON that no script element ends in.
"""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from compare.render.blocks import Section, Widget
from compare.render.glossary import GLOSSARY
from compare.render.html import read_static, shared_environment
from compare.render.picture import Picture, inline_picture
from compare.render.programs import programs
from compare.render.report.attribution import controls_section
from compare.render.report.phase import phase_section
from compare.render.report.plan import plan_section
from compare.render.report.step_walkthrough import walk_step
from compare.render.report.torus import lay_out_torus
from compare.render.time.section import SCRIPT, SCRIPT_HASH, time_section
from compare.render.time.sentence import time_sentence
from compare.render.time.timeline_strip import Strip
from compare.render.units import bytes_text
from compare.report.controls import describe_control
from compare.report.model.codec import Json
from compare.report.model.contract import PhaseContract
from compare.report.model.report import Report

_READ = (
    "{numbers} Bytes on the wire are counted from the compiler's own text, memory is what the compiler planned, seconds"
    " are those of making the programs on this machine."
)
_NO_TIMES = (
    "Every number on this page is read from compiled programs. Nothing ran on a TPU, and nothing here is a time on one."
)
_TIMES = (
    "Every number of bytes on this page is read from compiled programs. Times are those of a model of the compiled"
    " schedule, or measured, and each says which: the two never mix."
)


def render_page(
    report: Report,
    *,
    pictures: Sequence[Picture] = (),
    time_pictures: Sequence[Picture] = (),
    strips: Sequence[Strip] = (),
    sections: Sequence[Section] = (),
) -> str:
    """The whole page as HTML; `strips` are the timelines that it shows, `sections` what slices add."""
    sentence = time_sentence(report)
    every = [
        *(phase_section(report, phase) for phase in report.phases),
        controls_section(report),
        *sections,
        time_section(report, strips=strips, pictures=time_pictures),
        *(_story(report, phase) for phase in report.phases),
        _mesh(report),
        _figures(pictures),
        plan_section(
            {
                phase: PhaseContract(inherent=found.inherent, total=found.inherent_total, notes=found.notes)
                for phase, found in report.phases.items()
            },
            {phase: _satisfied(report, phase) for phase in report.phases},
        ),
        _compiled(report, timed=bool(sentence)),
        _widget("glossary", "glossary", "glossary", "glossary.html.j2", {"glossary": GLOSSARY}),
    ]
    return (
        shared_environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            case=report.case,
            time_sentence=sentence,
            style=read_static("page.css"),
            sections=[section for section in every if section.blocks],
            scripted=bool(strips),
            script=Markup(SCRIPT),
            script_hash=SCRIPT_HASH,
        )
    )


def _widget(anchor: str, title: str, link: str, template: str, values: Mapping[str, object], lead: str = "") -> Section:
    """A section that is one drawing."""
    return Section(anchor=anchor, title=title, link=link, lead=lead,
                   blocks=(Widget(template=template, values=values),))  # fmt: skip


def _story(report: Report, phase: str) -> Section:
    found = walk_step(report, phase)
    lead = (
        "What moves where, how often, and by which cause. Bars are to one scale: the longest is"
        f" {bytes_text(found.most_bytes)} per step."
    )
    return _widget(f"story-{phase}", f"one step of {phase}, in order", f"{phase}, step by step", "story.html.j2",
                   {"story": found}, lead)  # fmt: skip


def _mesh(report: Report) -> Section:
    mesh, wraps = report.mesh, report.mesh.wraps
    lead = (
        f"{report.case.plan.name} on {mesh.topology}. Devices of one colour form a group; the line runs"
        " through its members in order, as a thin arc between those that are not neighbours in the drawing. Dashed"
        " ends are links around to the other side."
    )
    if len(wraps) > 2 and wraps[2]:
        lead += " The first and the last z are linked too."
    values = {"torus": lay_out_torus(mesh), "report": report, "case": report.case}
    return _widget("mesh", "the mesh on the chips", "the mesh", "torus.html.j2", values, lead)


def _figures(pictures: Sequence[Picture]) -> Section:
    widget = Widget(template="figures.html.j2", values={"pictures": [inline_picture(one) for one in pictures]})
    return Section(anchor="figures", title="figures", link="figures", blocks=(widget,) if pictures else ())


def _satisfied(report: Report, phase: str) -> list[str]:
    """For each row of the contract the programs that do not move all of it."""
    judged = [one for one in programs(report) if one.phase == phase and one.judged]
    words = []
    for number in range(len(report.phases[phase].inherent)):
        rows = [(one, one.entry.served[number]) for one in judged]
        short = [f"{one.title} `{one.cell}` {bytes_text(row.served_bytes)}" for one, row in rows if row.unserved_bytes]
        words.append("; ".join(short) or ("in full" if rows else "–"))
    return words


def _compiled(report: Report, *, timed: bool) -> Section:
    values = {"programs": list(programs(report)), "facts": list_facts, "what": describe_control}
    lead = _READ.format(numbers=_TIMES if timed else _NO_TIMES)
    return _widget("honesty", "what was compiled", "what was compiled", "compiled.html.j2", values, lead)


_NOT_SHOWN = ("optimal_s", "optimal_seconds")
"""The compiler's estimate of a time, which is -1 and worse for programs with loops."""


def list_facts(found: Mapping[str, Json], unit: str = "") -> list[tuple[str, str]]:
    """Name and value of everything in it, what is inside others behind their names; `unit` is that of its numbers."""
    return [(" ".join(names).replace("_", " "), _text(names[-1], value, unit)) for names, value in _leaves(found)]


def _leaves(found: Mapping[str, Json], before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    for name, value in found.items():
        if name in _NOT_SHOWN:
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, (*before, name))
        else:
            yield (*before, name), value


def _text(name: str, value: Json, unit: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(name, one, unit) for one in value) or "–"
    if isinstance(value, int | float):
        if "bytes" in name:
            return bytes_text(value)
        words = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        return f"{words} {unit}".strip()
    return str(value)
