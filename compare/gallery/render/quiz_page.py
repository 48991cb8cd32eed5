"""The quiz as a page: questions that were compiled as the gallery was built, each truth folded until it is wanted."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compare.gallery.lesson_types.lesson_result import Made
from compare.gallery.quiz.question import Question
from compare.gallery.render.quiz_words import Told, arrays, sizes
from compare.gallery.render.words import SCATTERED


def quiz_values(
    questions: Sequence[Question], made: Sequence[Made], source_of: Callable[[Question], str]
) -> Mapping[str, Any]:
    """What the page's template is given."""
    asked = [Told(question, one) for question, one in zip(questions, made, strict=True)]
    return {
        "scattered": SCATTERED,
        "asked": [
            (one, arrays(one.question), sizes(one.question), source_of(one.question)) for one in asked if one.made.ok
        ],
    }
