"""`python -m compare.teach --quiz`: a lesson's program without its name; the answer is what it compiles to."""

import re
import secrets
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from compare.gallery.answers import HOW, Answer, AnswerError, format_counts, read_answer
from compare.gallery.compile_lessons import build_each
from compare.gallery.lesson_types.lesson import STANDINGS
from compare.gallery.lesson_types.lesson_result import LessonResult
from compare.gallery.lessons import LESSONS
from compare.gallery.render.words import (
    SCATTERED,
    TITLES,
    axes_phrase,
    form_phrase,
    shows_scatters,
    signature,
    strip_markup,
    sums,
)
from compare.render.terminal import STYLES, console, text_width, wrap_prose
from compare.render.units import exact_text
from compare.run import cache
from meshes.process.command_line import REFUSED, print_json
from meshes.process.log import complain, log
from meshes.process.one_line import one_line, plain

QUESTIONS = tuple((lesson, program) for lesson in LESSONS for program in lesson.programs)
STEP = 101
"""From one question to the next, so that two in a row are of different chapters; it divides no number of questions."""

TRIES = 3
"""Attempts at a readable answer."""

RIGHT, WRONG = "inherent", "induced"
"""The styles of a right and of a wrong answer."""


def take_quiz(seed: int | None, words: str | None, *, as_json: bool, no_cache: bool) -> int:
    """Ask question `seed`, and show what its program compiles to.

    words: the answer; None: read it from standard input, or with `as_json` ask without an answer.
    0: right, or not answered; 1: wrong, or the program could not be compiled; 2: an unreadable answer.
    """
    number = (secrets.randbelow(len(QUESTIONS)) if seed is None else seed) % len(QUESTIONS)
    lesson, program = QUESTIONS[number * STEP % len(QUESTIONS)]
    try:
        answer = None if words is None else read_answer(words, lesson.mesh)
    except AnswerError as error:
        complain(f"error: {error}")
        return REFUSED
    with cache.open_cache(bypass=no_cache) as kept:
        (result,) = build_each([(lesson, program)], cache=kept, notify=log().info)
    if as_json:
        print_json(_question_json(result, number) | ({} if words is None else _answer_json(result, answer)))
    elif not result.ok:
        words_of = f"Question {number} could not be compiled, {result.status}: {one_line(result.error)}"
        _prose(console(), words_of, style=STYLES[WRONG])
    else:
        _print_question(result, number)
        answer = _read_typed(lesson.mesh) if words is None else answer
        _print_truth(result, answer)
    return 0 if result.ok and (answer is None or answer.is_right(result.counts)) else 1


def hide_name(result: LessonResult) -> str:
    """The source of a program's function as `f`, so that its name gives nothing away, without its decorator: the splits
    stand in the question."""
    _, define, rest = result.source.partition(f"def {result.lesson.pattern}(")
    return define.replace(result.lesson.pattern, "f") + rest


def _read_typed(mesh: Mapping[str, int]) -> Answer | None:
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


def _sizes(result: LessonResult) -> str:
    """`T = 512, D = 1,024; mesh dp = 2, tp = 2; bf16; JAX (Shardy), v5e:2x2`."""
    lesson = result.lesson
    used = set(re.findall(r"\w+", " ".join(lesson.arrays.values())))
    letters = ", ".join(f"{name} = {size:,}" for name, size in lesson.sizes.items() if name in used)
    mesh = ", ".join(f"{name} = {size}" for name, size in lesson.mesh.items())
    types = ", ".join(dict.fromkeys(map(lesson.dtype, lesson.arrays)))
    return f"{letters}; mesh {mesh}; {types}; {TITLES[result.program]} for {lesson.topology}"


def _print_question(result: LessonResult, number: int) -> None:
    out = console()
    out.print(Text(f"Question {number} of {len(QUESTIONS)}", style="bold"))
    out.print(Text(signature(result.lesson, result), style="cyan"))
    _prose(out, _sizes(result))
    out.print(Syntax(hide_name(result).rstrip(), "python", background_color="default", word_wrap=True))
    _prose(out, "Which collectives does a step of the compiled program run, over which axes, and how often?")
    _prose(out, f"Answer: {HOW}")


def _print_truth(result: LessonResult, answer: Answer | None) -> None:
    """Print whether the answer is right, the compiled collectives, and the lesson's rule."""
    out, lesson, truth = console(), result.lesson, result.counts
    if answer is None:
        _prose(out, f"It is {format_counts(truth)}")
    elif answer.is_right(truth):
        _prose(out, f"Right: {format_counts(truth)}", style=STYLES[RIGHT])
    else:
        wrong = "Wrong in number only" if answer.is_miscounted(truth) else "Wrong"
        _prose(out, f"{wrong}: you said {answer}; it is {format_counts(truth)}", style=STYLES[WRONG])
    for row in result.rows:
        size = f"{exact_text(row.payload_bytes)} {row.dtype}{form_phrase(row)}"
        _prose(out, f"  {row.executions or '?'} × {row.kind}@{row.axes}, {size}")
    if shows_scatters([result]):
        _prose(out, SCATTERED)
    _prose(out, f"The rule, {lesson.name} ({lesson.standing}): {lesson.rule}")
    for line in sums(lesson, lesson.expected(result.program)):
        times = f"{line.move.times} × " if line.move.times > 1 else ""
        what = f"{times}{line.move.kind} {axes_phrase(line.move)}, {line.move.what}"
        _prose(out, f"  {what}: {line.formula} = {line.numbers} = {line.payload:,} B")
    if why := lesson.why(result.program):
        _prose(out, why)
    if not result.is_as_written:
        _prose(out, "This is not what the lesson says: the compiler or the framework has changed.", style=STYLES[WRONG])
    _prose(out, f"Read: python -m compare.teach {lesson.name}, or docs/gallery/{lesson.name}.html")


def _question_json(result: LessonResult, number: int) -> dict[str, object]:
    """A question without its answer."""
    lesson = result.lesson
    axes = dict(zip(lesson.arrays, [*result.takes, *result.gives], strict=False))
    return {
        "seed": number,
        "program": result.program,
        "topology": lesson.topology,
        "mesh": dict(lesson.mesh),
        "arrays": {
            name: {"shape": list(lesson.shape(name)), "dtype": lesson.dtype(name), "axes": list(axes.get(name, ()))}
            for name in lesson.arrays
        },
        "signature": signature(lesson, result) if result.source else "",
        "source": hide_name(result),
        "status": result.status,
    }


def _answer_json(result: LessonResult, answer: Answer | None) -> dict[str, object]:
    lesson, truth = result.lesson, result.counts if result.ok else None
    return {
        "error": result.error,
        "answer": None if answer is None else dict(answer.counts),
        "is_right": None if answer is None or truth is None else answer.is_right(truth),
        "is_wrong_in_number_only": None if answer is None or truth is None else answer.is_miscounted(truth),
        "truth": truth,
        "is_as_written": result.is_as_written if result.ok else None,
        "rule": {
            "lesson": lesson.name,
            "standing": lesson.standing,
            "standing_means": STANDINGS[lesson.standing],
            "rule": lesson.rule,
            "border": lesson.border,
            "why": lesson.why(result.program),
        },
        "program_rows": result.public()["collectives"],
        "versions": result.versions,
    }


def _prose(out: Console, words: str, *, style: str = "") -> None:
    kept = len(words) - len(words.lstrip())
    out.print(wrap_prose(strip_markup(words), width=text_width(out), indent=" " * kept, hang="    ", style=style))
