"""A question of the quiz, compiled when it is asked; and the lines that it is about."""

import ast
from collections.abc import Callable, Sequence

from compare.judge.lessons.made import Made
from compare.judge.quiz.question import Question
from compare.work import arms, steps
from compare.work.cache import Cache
from compare.work.teach import build_each


def compiled(questions: Sequence[Question], *, cache: Cache, tell: Callable[[str], None]) -> list[Made]:
    """The program of each question."""
    return build_each([(one.lesson, one.program) for one in questions], cache=cache, tell=tell)


def source_of(question: Question) -> str:
    """The question's function as it stands in the arm's patterns, under the name `f`, which tells nothing, and without
    its decorator: splits are the question's."""
    folder = steps.ROOT / arms.arm(question.program.partition("/")[0]).module / "patterns"
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name == question.lesson.pattern:
                lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
                return "\n".join(lines).replace(f"def {node.name}(", "def f(", 1) + "\n"
    raise ValueError(f"no file in {folder.name} has the pattern {question.lesson.pattern}")
