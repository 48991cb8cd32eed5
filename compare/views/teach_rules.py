"""All rules on one page: how to find an answer, what a matmul sends in each case, and each lesson's rule."""

from collections.abc import Sequence
from typing import Any

from compare.judge.lessons import CHAPTERS, chosen
from compare.judge.lessons.lesson import Lesson
from compare.judge.quiz.matmuls import CASES, moves_of

AXIS = "a"
PAGE = "rules.html"


def rules_values(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """What the page's template is given; `lessons` are those that have pages."""
    return {
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
