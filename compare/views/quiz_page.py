"""The quiz as a page: questions that were compiled as the gallery was built, each truth folded until it is wanted."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compare.judge.lessons.made import Made
from compare.judge.quiz.question import Question
from compare.views.quiz_words import Told, arrays, sizes
from compare.views.teach_words import SCATTERED


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
