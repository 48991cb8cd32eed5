"""The gallery as static pages: an index, a page for each lesson, and their style.  No script."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup, escape

from compare.gallery.lesson_types.lesson import BYTES, COMPILER, STANDINGS, Lesson
from compare.gallery.lesson_types.lesson_result import LessonResult, needed_wire
from compare.gallery.lessons import CHAPTERS, LESSONS, TEN_FIRST, Chapter, find_lesson
from compare.gallery.render.lesson_figures import draw_mesh, draw_tensors, picture_inches
from compare.gallery.render.tensors import Tensor, list_tensors
from compare.gallery.render.words import (
    ARMS,
    SCATTERED,
    TITLES,
    axes_words,
    disagreement,
    evidence,
    form_phrase,
    join_counts,
    list_needs,
    outcomes,
    partitioners_differ,
    reach,
    shows_scatters,
    signature,
    sums,
)
from compare.render import units
from compare.render.glossary import GLOSSARY
from compare.render.html import environment, read_static
from compare.report.grouping import group_by
from meshes.process import atomic_files

INDEX, STYLE = "index.html", "gallery.css"
_CHIPS = {4: "four", 8: "eight"}
_OWN_WORDS = {
    "mesh": "A grid of devices whose axes have names and sizes.",
    "axis, dim": "A mesh has axes, a tensor has dims. Splitting a dim over an axis gives each device along that axis "
    "one part of it.",
    "whole, copied": "A dim that no axis splits is whole. A tensor is copied along an axis that splits none of its "
    "dims: each device has it.",
    "partial sum": "A tensor of the result's shape that holds only a device's own terms; the sum over the devices is "
    "the result.",
    "contracting dim": "The dim of a matmul that is summed over: D in [T, D] · [D, F].",
    "partitioner": "The part of the compiler that turns a program for whole arrays into one for each device's parts: "
    "Shardy or GSPMD.",
}
_SCALES, _SMALL = (1.0, 0.76, 0.64), 0.76
"""Scales of the pictures: the first at which all panels fit in one row; else small ones, in two rows."""
_ROW, _FRAME, _CAPTION, _LETTER = 11.6, 0.39, 2.15, 0.08
"""Inches: of the widest page, of a panel's edges with the gap to the next, of a caption at the most, of a letter."""
_MARKS = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*([^*\s][^*]*)\*"), r"<em>\1</em>"),
    (
        re.compile(rf"(?<![\w-])({'|'.join(lesson.name for lesson in LESSONS if '-' in lesson.name)})(?![\w-])"),
        r'<a href="\1.html">\1</a>',
    ),
)

WORDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "payload", "on the wire")
"""Words of the glossary that the lessons use."""


def write_pages(results: Sequence[LessonResult], folder: Path) -> None:
    """Write every page; other files in the folder stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in render_pages(results).items():
        atomic_files.write_text(folder / name, text)


def render_pages(results: Sequence[LessonResult]) -> dict[str, str]:
    """File name -> text: the index, a page for every lesson that has programs, and the style sheet that they link."""
    by_lesson = group_by(results, lambda result: result.lesson.name)
    order = [lesson for lesson in LESSONS if lesson.name in by_lesson]
    pages = {
        f"{lesson.name}.html": _lesson(lesson, by_lesson[lesson.name], at=at, order=order)
        for at, lesson in enumerate(order)
    }
    if len(order) == len(LESSONS):  # links of rules lead to all of them
        template = _environment().get_template("rules.html.j2")
        pages[RULES] = template.render(style=STYLE, versions=_versions(results), **rules_values(order, by_lesson))
    links = [(RULES, "all rules")] if RULES in pages else []
    return {INDEX: _index(by_lesson, links=links), STYLE: _style()} | pages


def _lesson(lesson: Lesson, results: Sequence[LessonResult], *, at: int, order: Sequence[Lesson]) -> str:
    shown = next((item for item in results if item.source), None)
    takes, alone, gives = list_tensors(lesson, shown) if shown else ([], [], [])
    panels = [
        ("Before", "what each device is given", takes),
        ("Alone", lesson.alone_words, alone),
        ("After", _sent(lesson), gives),
    ]
    scale = _scale([(words, drawn) for _, words, drawn in panels if drawn], lesson.mesh)
    return (
        _environment()
        .get_template("lesson.html.j2")
        .render(
            lesson=lesson,
            style=STYLE,
            number=at + 1,
            count=len(order),
            chapter=_chapter(lesson),
            before=order[at - 1] if at else None,
            after=order[at + 1] if at + 1 < len(order) else None,
            signature=signature(lesson, shown) if shown else "",
            letters=_letters(lesson),
            dtypes=_dtypes(lesson),
            mesh=Markup(draw_mesh(lesson.mesh)),
            panels=[
                (title, words, Markup(draw_tensors(drawn, lesson.mesh, scale=scale)), [item.words for item in drawn])
                for title, words, drawn in panels
                if drawn
            ],
            sources=_sources(lesson, results),
            outcomes=outcomes(results),
            needs=sums(lesson, lesson.needs),
            needed=needed_wire(lesson),
            widest=max([item.wire_bytes for item in results] + [needed_wire(lesson), 1]),
            disagreement=disagreement(results),
            evidence=evidence(results),
            standing=reach(lesson, results),
            scattered=SCATTERED if shows_scatters(results) else "",
            chips=_CHIPS[lesson.num_devices],
            versions=_versions(results),
            sums=sums,
        )
    )


def _scale(panels: Sequence[tuple[str, Sequence[Tensor]]], mesh: Mapping[str, int]) -> float:
    def row(scale: float) -> float:
        return sum(
            max(picture_inches(drawn, mesh, scale=scale), min(_CAPTION, _LETTER * len(words))) + _FRAME
            for words, drawn in panels
        )

    return next((scale for scale in _SCALES if row(scale) <= _ROW), _SMALL)


def _sent(lesson: Lesson) -> str:
    """The communication between the local results and the final one, in words."""
    words = list_needs(lesson)
    return f"with {units.list_text(words)}" if words else "nothing was sent"


def _index(by_lesson: Mapping[str, Sequence[LessonResult]], *, links: Sequence[tuple[str, str]]) -> str:
    chapters = [
        (chapter, [(lesson, _card(by_lesson[lesson.name])) for lesson in chapter.lessons if lesson.name in by_lesson])
        for chapter in CHAPTERS
    ]
    every = [result for programs in by_lesson.values() for result in programs]
    return (
        _environment()
        .get_template("gallery.html.j2")
        .render(
            style=STYLE,
            chapters=[(chapter, lessons) for chapter, lessons in chapters if lessons],
            first=[
                (lesson, TEN_FIRST[lesson.name]) for lesson in LESSONS if lesson.name in TEN_FIRST.keys() & by_lesson
            ],
            count=len(by_lesson),
            programs=len(every),
            meshes=[(axes, Markup(draw_mesh(axes))) for axes in ({"tp": 4}, {"dp": 2, "tp": 2})],
            glossary=_OWN_WORDS | {word: meaning for word, meaning in GLOSSARY if word in WORDS},
            versions=_versions(every),
            standings=STANDINGS,
            scattered=SCATTERED,
            links=links,
        )
    )


def _card(results: Sequence[LessonResult]) -> dict[str, object]:
    """The index entry of a lesson: what it needs, and which programs emit something else."""
    lesson = results[0].lesson
    other = [outcome for outcome in outcomes(results) if outcome.verdict != "needed"]
    return {
        "needs": list_needs(lesson),
        "other": [(outcome.titles, outcome.words, outcome.emitted if outcome.first.ok else "") for outcome in other],
        "verdict": other[0].verdict if other else "needed",
    }


def _chapter(lesson: Lesson) -> Chapter:
    return next(chapter for chapter in CHAPTERS if lesson in chapter.lessons)


def _letters(lesson: Lesson) -> list[tuple[str, int]]:
    used = {dim for dims in lesson.arrays.values() for dim in dims.split()}
    return [(letter, size) for letter, size in lesson.sizes.items() if letter in used]


def _dtypes(lesson: Lesson) -> str:
    """`Numbers are bf16, 2 bytes each; ids: s32, 4 bytes.`"""
    exceptions = [f"{name}: {kind}, {BYTES[kind]} bytes" for name, kind in lesson.dtypes.items()]
    usual = [] if set(lesson.dtypes) == set(lesson.arrays) else ["Numbers are bf16, 2 bytes each"]
    return "; ".join([*usual, *exceptions]) + "."


def _sources(lesson: Lesson, results: Sequence[LessonResult]) -> list[tuple[str, str, str]]:
    """For each framework its lines, or why it has none."""
    entries = []
    for arm, title in ARMS.items():
        programs = [result for result in results if result.arm == arm]
        absent = lesson.absent.get(arm, "") or (programs[0].error if programs and not programs[0].source else "")
        source = next((result.source for result in programs if result.source), "")
        if programs or absent:
            entries.append((title, source, absent))
    return entries + [(TITLES[program], "", why) for program, why in lesson.absent.items() if program in TITLES]


def _versions(results: Sequence[LessonResult]) -> str:
    versions: dict[str, str] = {}
    for result in results:
        versions |= result.versions
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()) if version)


@cache
def _environment() -> Environment:
    templates = environment()
    templates.filters |= {
        "prose": _prose,
        "axes": axes_words,
        "form": form_phrase,
        "paragraphs": _paragraphs,
    }
    return templates


def _style() -> str:
    return read_static("page.css", "teach.css")


def _prose(words: str) -> Markup:
    """Escaped, with `code`, **strong** and *stressed* words, and links where other lessons are named."""
    text = str(escape(units.keep_units_together(" ".join(words.split()))))
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return Markup(text)


def _paragraphs(words: str) -> list[Markup]:
    return [_prose(part) for part in words.strip().split("\n\n")]


AXIS = "a"
RULES = "rules.html"
CASES = {
    ("T", "", "T"): "matmul-rows",
    ("", "F", "F"): "matmul-columns",
    ("D", "D", ""): "matmul-contracting",
    ("D", "D", "T"): "matmul-scattered",
    ("D", "D", "F"): "matmul-scattered",
    ("T", "F", "T"): "matmul-same-axis",
    ("T", "F", "F"): "matmul-same-axis",
    ("T", "D", "T"): "matmul-both-axes",
    ("D", "F", "F"): "matmul-both-axes",
    ("T", "", ""): "decide-wanted-whole",
    ("", "F", ""): "decide-wanted-whole",
}
"""Which dim an axis splits in x, in w and in y (empty: none) -> the lesson that says what is sent."""


def rules_values(lessons: Sequence[Lesson], results: Mapping[str, Sequence[LessonResult]]) -> dict[str, object]:
    """The values of the page's template.  lessons: those that have pages; results: lesson name -> its programs."""
    return {
        "scattered": SCATTERED,
        "told": {lesson.name: _rule_words(lesson, results[lesson.name]) for lesson in lessons},
        "cases": [_case(case, name) for case, name in CASES.items()],
        "chapters": [
            (chapter, listed)
            for chapter in CHAPTERS
            if (listed := [lesson for lesson in chapter.lessons if lesson in lessons])
        ],
    }


def _case(case: tuple[str, str, str], name: str) -> dict[str, object]:
    """One line of the table of matmuls: how an axis splits x, w and y, and what is sent."""
    arrays = [
        f"{array}[{', '.join(f'{dim}/{AXIS}' if dim == split else dim for dim in dims)}]"
        for array, dims, split in zip("xwy", ("TD", "DF", "TF"), case, strict=True)
    ]
    (lesson,) = find_lesson(name)
    return {"arrays": f"{arrays[0]} · {arrays[1]} → {arrays[2]}", "sent": _sent_in(case), "lesson": lesson}


def _sent_in(case: tuple[str, str, str]) -> list[tuple[str, str]]:
    """The collective of a matmul's case, and the formula of its payload; none where both parts fit."""
    in_x, in_w, in_y = case
    if in_x == in_w == "D":
        return [(f"{'reduce-scatter' if in_y else 'all-reduce'} of partial sums of y", "T·F·2")]
    if in_x and in_w:
        return [("all-gather of w", "D·F·2") if in_x == in_y else ("all-gather of x", "T·D·2")]
    return [] if in_y else [("all-gather of y", "T·F·2")]


def _rule_words(lesson: Lesson, results: Sequence[LessonResult]) -> dict[str, object]:
    """What is needed, which programs emit something else, and the standing of the rule."""
    return {
        "standing": lesson.standing
        + ", where Shardy and GSPMD differ" * (lesson.standing == COMPILER and partitioners_differ(results)),
        "needed": join_counts(list_needs(lesson)),
        "emitted": [
            (outcome.titles, outcome.emitted)
            for outcome in outcomes(results)
            if outcome.verdict not in ("needed", "failed")
        ],
    }
