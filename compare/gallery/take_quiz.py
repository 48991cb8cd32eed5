"""A question of the quiz: asked, compiled and told, as `python -m compare.teach --quiz` does; and its lines."""

import ast
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence

from compare.gallery.compile_lessons import build_each
from compare.gallery.lesson_types.lesson_result import LessonResult
from compare.gallery.quiz.answers import Answer, AnswerError, count_emitted, read_answer
from compare.gallery.quiz.draw import draw_question
from compare.gallery.quiz.question import Question
from compare.gallery.render.quiz_text import print_question, print_truth
from compare.gallery.render.quiz_words import AnsweredQuestion, answer_to_json, question_to_json
from compare.run import arms, cache, tasks
from compare.run.cache import Cache
from meshes.process.command_line import REFUSED, print_json
from meshes.process.one_line import complain, plain

SEEDS = 10**6
"""Of these one is taken where none is named."""

TRIES = 3
"""How often an answer may be unreadable."""


def take_quiz(seed: int | None, words: str | None, *, as_json: bool, no_cache: bool) -> int:
    """Ask question `seed`, and tell the truth of it.

    words: the answer; without one it is read from standard input, in JSON none is.
    0: right, or nothing was answered; 1: wrong, or it could not be compiled; 2: no readable answer.
    """
    question = draw_question(secrets.randbelow(SEEDS) if seed is None else seed)
    source = question_source(question)
    mesh = question.lesson.mesh
    try:
        answer = None if words is None else read_answer(words, mesh)
    except AnswerError as error:
        complain(f"compare.teach: {error}")
        return REFUSED
    if as_json and words is None:
        print_json(question_to_json(question, source))
        return 0
    if not as_json:
        print_question(question, source)
        if words is None:
            answer = _heard(question.lesson.mesh)
    with cache.open_cache(bypass=no_cache) as kept:
        (made,) = compile_questions([question], cache=kept, tell=complain)
    told = AnsweredQuestion(question, made)
    if as_json:
        print_json(question_to_json(question, source) | answer_to_json(told, answer))
    else:
        print_truth(told, answer)
    return 0 if made.ok and (answer is None or answer.is_right(count_emitted(made))) else 1


def _heard(mesh: Mapping[str, int]) -> Answer | None:
    """What is typed; None for an empty line or the end: tell me."""
    for _ in range(TRIES):
        print("> ", end="", flush=True)
        words = sys.stdin.readline()
        if not words.strip():
            return None
        try:
            return read_answer(words.strip(), mesh)
        except AnswerError as error:
            print(plain(error))
    return None


def compile_questions(
    questions: Sequence[Question], *, cache: Cache, tell: Callable[[str], None]
) -> list[LessonResult]:
    """The program of each question."""
    return build_each([(one.lesson, one.program) for one in questions], cache=cache, tell=tell)


def question_source(question: Question) -> str:
    """The question's function as it stands in the arm's patterns, under the name `f`, which tells nothing, and without
    its decorator: splits are the question's."""
    folder = tasks.ROOT / arms.find_arm(question.program.partition("/")[0]).module / "patterns"
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name == question.lesson.pattern:
                lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
                return "\n".join(lines).replace(f"def {node.name}(", "def f(", 1) + "\n"
    raise ValueError(f"no file in {folder.name} has the pattern {question.lesson.pattern}")
