"""`python -m compare.teach --quiz`: ask a question, compile its program, and show the result."""

import ast
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from compare.gallery.compile_lessons import build_each
from compare.gallery.lesson_types.lesson_result import LessonResult
from compare.gallery.quiz.answers import HOW, Answer, AnswerError, count_emitted, read_answer
from compare.gallery.quiz.draw import draw_question
from compare.gallery.quiz.question import Question
from compare.gallery.render.quiz_words import (
    AnsweredQuestion,
    answer_to_json,
    arrays,
    question_to_json,
    rule_lines,
    sizes,
    sum_lines,
)
from compare.gallery.render.words import SCATTERED, shows_scatters, strip_markup
from compare.render.terminal import STYLES, console, text_width, wrap_prose
from compare.run import arms, cache, tasks
from compare.run.cache import Cache
from meshes.process.command_line import REFUSED, print_json
from meshes.process.one_line import complain, one_line, plain

SEEDS = 10**6
"""A random seed is below this."""

TRIES = 3
"""Attempts at a readable answer."""

RIGHT, WRONG = "inherent", "induced"
"""The styles of a right and of a wrong answer."""


def take_quiz(seed: int | None, words: str | None, *, as_json: bool, no_cache: bool) -> int:
    """Ask question `seed`, and show the compiled result.

    words: the answer; None: read it from standard input, or with `as_json` ask without an answer.
    0: right, or not answered; 1: wrong, or the program could not be compiled; 2: an unreadable answer.
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
        (result,) = compile_questions([question], cache=kept, notify=complain)
    answered = AnsweredQuestion(question, result)
    if as_json:
        print_json(question_to_json(question, source) | answer_to_json(answered, answer))
    else:
        print_truth(answered, answer)
    return 0 if result.ok and (answer is None or answer.is_right(count_emitted(result))) else 1


def _heard(mesh: Mapping[str, int]) -> Answer | None:
    """The typed answer; None for an empty line or the end of input."""
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
    questions: Sequence[Question], *, cache: Cache, notify: Callable[[str], None]
) -> list[LessonResult]:
    """The program of each question."""
    return build_each([(question.lesson, question.program) for question in questions], cache=cache, notify=notify)


def question_source(question: Question) -> str:
    """The source of the question's function, renamed to `f` so that its name gives nothing away, without its
    decorator: the splits are the question's."""
    folder = tasks.ROOT / arms.find_arm(question.program.partition("/")[0]).module / "patterns"
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name == question.lesson.pattern:
                lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
                return "\n".join(lines).replace(f"def {node.name}(", "def f(", 1) + "\n"
    raise ValueError(f"no file in {folder.name} has the pattern {question.lesson.pattern}")


def print_question(question: Question, source: str) -> None:
    """Print the question, without its answer."""
    out = console()
    out.print(Text(f"Question {question.seed}", style="bold"))
    out.print(Text(arrays(question), style="cyan"))
    _prose(out, sizes(question))
    out.print(Syntax(source.rstrip(), "python", background_color="default", word_wrap=True))
    _prose(out, "Which collectives does a step of the compiled program run, over which axes, and how often?")
    _prose(out, f"Answer: {HOW}")


def print_truth(answered: AnsweredQuestion, answer: Answer | None) -> None:
    """Print whether the answer is right, the compiled result, and why."""
    out = console()
    if not answered.result.ok:
        _prose(
            out,
            f"It could not be compiled, {answered.result.status}: {one_line(answered.result.error)}",
            style=STYLES[WRONG],
        )
        return
    if answer is not None:
        truth = count_emitted(answered.result)
        right = answer.is_right(truth)
        wrong = "Wrong in number only" if answer.is_miscounted(truth) else "Wrong"
        words = f"Right: {answered.truth}" if right else f"{wrong}: you said {answer}; it is {answered.truth}"
        _prose(out, words, style=STYLES[RIGHT if right else WRONG])
    else:
        _prose(out, f"It is {answered.truth}")
    for line in answered.lines:
        _prose(out, f"  {strip_markup(line)}")
    if shows_scatters([answered.result]):
        _prose(out, SCATTERED)
    for line in rule_lines(answered):
        _prose(out, f"The rule, {line}")
    for line in sum_lines(answered):
        _prose(out, f"  {line}")
    if not answered.follows:
        _prose(out, "This is not what the rules say: the compiler or the framework has changed.", style=STYLES[WRONG])
    for lesson in answered.lessons:
        _prose(out, f"Read: python -m compare.teach {lesson.name}, or docs/gallery/{lesson.name}.html")


def _prose(out: Console, words: str, *, style: str = "") -> None:
    kept = len(words) - len(words.lstrip())
    out.print(wrap_prose(strip_markup(words), width=text_width(out), indent=" " * kept, hang="    ", style=style))
