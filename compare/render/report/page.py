"""`report.html`: one self-contained file; its only script draws the strips, and is allowed by its hash.

Text from programs (names, scopes, source lines, HLO, errors) reaches the page only through Jinja's escaping, or as
JSON that cannot close its script element.
"""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from compare.render.blocks import Section, Widget
from compare.render.energy.power import power_blocks
from compare.render.energy.section import BREAKDOWN, energy_section
from compare.render.energy.sentence import energy_sentence
from compare.render.glossary import GLOSSARY
from compare.render.html import read_static, shared_environment
from compare.render.picture import Picture, inline_picture
from compare.render.programs import programs
from compare.render.report.attribution import controls_section
from compare.render.report.phase import phase_section
from compare.render.report.plan_tables import plan_section
from compare.render.report.step_walkthrough import walk_step
from compare.render.report.torus import lay_out_torus
from compare.render.time.section import SCRIPT, SCRIPT_HASH, time_section
from compare.render.time.sentence import time_sentence
from compare.render.time.speed.section import speed_section
from compare.render.time.timeline_strip import Strip
from compare.render.time.timing_section import timings_by_phase
from compare.render.units import bytes_text
from compare.report.controls import describe_control
from compare.report.model.codec import Json
from compare.report.model.contract import PhaseContract
from compare.report.model.report import Report

_READ = (
    "{numbers} Bytes on the wire are counted in the compiler's own text. Memory is as the compiler planned it. "
    "Seconds are those of making the programs on this machine."
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
    """The page as HTML; `strips`: the timelines shown; `sections`: further sections, from slices."""
    sentence = time_sentence(report)
    of_energy = [picture for picture in time_pictures if picture.name.endswith(BREAKDOWN)]
    of_time = [picture for picture in time_pictures if not picture.name.endswith(BREAKDOWN)]
    all_sections = [
        speed_section(report),
        *(phase_section(report, phase) for phase in report.phases),
        controls_section(report),
        *sections,
        time_section(report, strips=strips, below_strips=power_blocks(timings_by_phase(report)), pictures=of_time),
        energy_section(report, pictures=of_energy),
        *(_story(report, phase) for phase in report.phases),
        _mesh(report),
        _figures(pictures),
        plan_section(
            {
                phase: PhaseContract(
                    inherent=phase_report.inherent, total=phase_report.inherent_total, notes=phase_report.notes
                )
                for phase, phase_report in report.phases.items()
            },
            {phase: _satisfied_words(report, phase) for phase in report.phases},
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
            energy_sentence=energy_sentence(report),
            style=read_static("page.css"),
            sections=[section for section in all_sections if section.blocks],
            scripted=bool(strips),
            script=Markup(SCRIPT),
            script_hash=SCRIPT_HASH,
        )
    )


def _widget(anchor: str, title: str, link: str, template: str, values: Mapping[str, object], lead: str = "") -> Section:
    """A section with one drawing."""
    return Section(anchor=anchor, title=title, link=link, lead=lead, blocks=(Widget(template=template, values=values),))


def _story(report: Report, phase: str) -> Section:
    story = walk_step(report, phase)
    lead = (
        "The bytes that move, where, how often and by which cause. Bars are to one scale: the longest is"
        f" {bytes_text(story.most_bytes)} per step."
    )
    return _widget(
        f"story-{phase}",
        f"one step of {phase}, in order",
        f"{phase}, step by step",
        "story.html.j2",
        {"story": story},
        lead,
    )


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
    widget = Widget(template="figures.html.j2", values={"pictures": [inline_picture(picture) for picture in pictures]})
    return Section(anchor="figures", title="figures", link="figures", blocks=(widget,) if pictures else ())


def _satisfied_words(report: Report, phase: str) -> list[str]:
    """For each contract row the programs that satisfy it only in part, and how far."""
    judged = [program for program in programs(report) if program.phase == phase and program.judged]
    words = []
    for index in range(len(report.phases[phase].inherent)):
        rows = [(program, program.entry.served[index]) for program in judged]
        short = [
            f"{program.title} `{program.cell}` {bytes_text(row.served_bytes)}"
            for program, row in rows
            if row.unserved_bytes
        ]
        words.append("; ".join(short) or ("in full" if rows else "–"))
    return words


def _compiled(report: Report, *, timed: bool) -> Section:
    values = {"programs": list(programs(report)), "facts": list_facts, "what": describe_control}
    lead = _READ.format(numbers=_TIMES if timed else _NO_TIMES)
    return _widget("honesty", "what was compiled", "what was compiled", "compiled.html.j2", values, lead)


_NOT_SHOWN = ("optimal_s", "optimal_seconds")
"""The compiler's time estimates, which are wrong (-1 and worse) for programs with loops."""


def list_facts(facts: Mapping[str, Json], unit: str = "") -> list[tuple[str, str]]:
    """(name, value) of every leaf, with the names of its parents; `unit`: of its numbers."""
    return [(" ".join(names).replace("_", " "), _text(names[-1], value, unit)) for names, value in _flatten(facts)]


def _flatten(facts: Mapping[str, Json], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    for name, value in facts.items():
        if name in _NOT_SHOWN:
            continue
        if isinstance(value, Mapping):
            yield from _flatten(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _text(name: str, value: Json, unit: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(name, item, unit) for item in value) or "–"
    if isinstance(value, int | float):
        if "bytes" in name:
            return bytes_text(value)
        words = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        return f"{words} {unit}".strip()
    return str(value)
