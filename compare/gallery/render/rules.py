"""All rules on one page: how to find an answer, what a matmul sends in each case, and each lesson's rule."""

from collections.abc import Mapping, Sequence
from typing import Any

from compare.gallery.lesson_types.lesson import COMPILER, Lesson
from compare.gallery.lesson_types.lesson_result import Made
from compare.gallery.lessons import CHAPTERS, chosen
from compare.gallery.quiz.matmuls import CASES, moves_of
from compare.gallery.render.words import SCATTERED, needed_words, outcomes, partitioners_differ

AXIS = "a"
PAGE = "rules.html"


def rules_values(lessons: Sequence[Lesson], made: Mapping[str, Sequence[Made]]) -> dict[str, Any]:
    """What the page's template is given; `lessons` are those that have pages, `made` their programs by name."""
    return {
        "scattered": SCATTERED,
        "told": {lesson.name: _told(lesson, made[lesson.name]) for lesson in lessons},
        "cases": [_case(case, name) for case, name in CASES.items()],
        "chapters": [
            (chapter, found)
            for chapter in CHAPTERS
            if (found := [lesson for lesson in chapter.lessons if lesson in lessons])
        ],
    }


def _case(case: tuple[str, str, str], name: str) -> dict[str, Any]:
    """One line of the table of matmuls: how an axis splits x, w and y, and what is sent."""
    arrays = [
        f"{array}[{', '.join(f'{dim}/{AXIS}' if dim == split else dim for dim in dims)}]"
        for array, dims, split in zip("xwy", ("TD", "DF", "TF"), case, strict=True)
    ]
    (lesson,) = chosen(name)
    sent = [(f"{move.kind} of {move.what.removeprefix('the ')}", move.formula) for move in moves_of({AXIS: case})]
    return {"arrays": f"{arrays[0]} · {arrays[1]} → {arrays[2]}", "sent": sent, "lesson": lesson}


def _told(lesson: Lesson, made: Sequence[Made]) -> dict[str, Any]:
    """What is needed, and who emits something else; and how far the rule's standing reaches."""
    return {
        "standing": lesson.standing
        + ", where Shardy and GSPMD differ" * (lesson.standing == COMPILER and partitioners_differ(made)),
        "needed": needed_words(lesson),
        "emitted": [(one.titles, one.emitted) for one in outcomes(made) if one.verdict not in ("needed", "failed")],
    }
