"""The words about a question of the quiz, for a terminal, JSON and a page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compare.gallery.lesson_types.lesson import STANDINGS, Lesson, count_moves
from compare.gallery.lesson_types.lesson_result import LessonResult
from compare.gallery.lessons import find_lesson
from compare.gallery.quiz.answers import Answer, count_emitted, format_counts
from compare.gallery.quiz.question import Question
from compare.gallery.render.figures import Tensor
from compare.gallery.render.words import SCATTERED, TITLES, Sum, axes_phrase, form_phrase, sums
from compare.render.units import exact_text

FREE = "free: no collective"


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question and the result of its program."""

    question: Question
    result: LessonResult

    @property
    def lessons(self) -> list[Lesson]:
        """The lessons whose rules answer it."""
        return [lesson for name in self.question.rules for lesson in find_lesson(name)]

    @property
    def truth(self) -> str:
        """`2 × all-gather@dp, all-reduce@tp`."""
        counts = count_emitted(self.result)
        return format_counts(counts) if counts else FREE

    @property
    def lines(self) -> list[str]:
        """A line for each collective of the compiled program."""
        return [
            f"{row.executions or '?'} × {row.kind}@{row.axes}, {exact_text(row.payload_bytes)} "
            f"{row.dtype}{form_phrase(row)}"
            for row in self.result.rows
        ]

    @property
    def follows(self) -> bool:
        """Whether the compiled program is what the lessons' rules say."""
        return self.result.emitted == count_moves(self.question.lesson, self.question.lesson.needs)

    @property
    def sums(self) -> list[Sum]:
        """The bytes by the rule, with the calculation."""
        return sums(self.question.lesson, self.question.lesson.needs)


def arrays(question: Question) -> str:
    """`x[T/dp, D], w[D, F] → y[T/dp, F]`."""
    lesson = question.lesson
    words = {
        name: Tensor(
            name=name, dims=(dims := tuple(text.split())), sizes=(1,) * len(dims), axes=lesson.splits[name]
        ).words
        for name, text in lesson.arrays.items()
    }
    takes, gives = ([words[name] for name in group] for group in (lesson.takes, lesson.gives))
    return f"{', '.join(takes)} → {', '.join(gives)}"


def sizes(question: Question) -> str:
    """`T = 512, D = 1,024; dp = 2, tp = 2; bf16; JAX (Shardy), v5e:2x2`."""
    lesson = question.lesson
    used = {dim for dims in lesson.arrays.values() for dim in dims.split()}
    letters = ", ".join(f"{name} = {size:,}" for name, size in lesson.sizes.items() if name in used)
    mesh = ", ".join(f"{name} = {size}" for name, size in lesson.mesh.items())
    exceptions = ", ".join(f"{name} {kind}" for name, kind in lesson.dtypes.items())
    usual = "" if set(lesson.dtypes) == set(lesson.arrays) else "bf16"
    types = f"{usual}; {exceptions}" if usual and exceptions else usual or exceptions
    return f"{letters}; mesh {mesh}; {types}; {TITLES[question.program]} for {lesson.topology}"


def rule_lines(answered: AnsweredQuestion) -> list[str]:
    """Each rule with its standing, and where the lesson is."""
    return [f"{lesson.name} ({lesson.standing}): {lesson.rule}" for lesson in answered.lessons]


def question_to_json(question: Question, source: str) -> dict[str, object]:
    """The JSON form of a question, without its answer."""
    lesson = question.lesson
    return {
        "seed": question.seed,
        "program": question.program,
        "topology": lesson.topology,
        "mesh": dict(lesson.mesh),
        "arrays": {
            name: {"shape": list(lesson.shape(name)), "dtype": lesson.dtype(name), "axes": list(lesson.splits[name])}
            for name in lesson.arrays
        },
        "signature": arrays(question),
        "source": source,
    }


def answer_to_json(answered: AnsweredQuestion, answer: Answer | None) -> dict[str, object]:
    """The JSON form of the result, and whether the answer is right."""
    result = answered.result
    known = count_emitted(result) if result.ok else None
    return {
        "status": result.status,
        "error": result.error,
        "answer": None if answer is None else dict(answer.counts),
        "is_right": None if answer is None or known is None else answer.is_right(known),
        "is_wrong_in_number_only": None if answer is None or known is None else answer.is_miscounted(known),
        "truth": known,
        "follows_the_rule": answered.follows if result.ok else None,
        "rules": [
            {
                "lesson": lesson.name,
                "page": f"{lesson.name}.html",
                "standing": lesson.standing,
                "standing_means": STANDINGS[lesson.standing],
                "rule": lesson.rule,
                "border": lesson.border,
            }
            for lesson in answered.lessons
        ],
        "by_the_rule": [
            {
                "collective": move.collective,
                "times": move.times,
                "payload": move.formula,
                "payload_bytes": answered.question.lesson.payload(move),
            }
            for move in answered.question.lesson.needs
        ],
        "program_rows": result.public()["collectives"],
        "versions": result.versions,
    }


def sum_lines(answered: AnsweredQuestion) -> list[str]:
    """By the rule: each collective with its bytes."""
    return [
        f"{f'{line.move.times} × ' if line.move.times > 1 else ''}{line.move.kind} "
        f"{axes_phrase(line.move)}, {line.move.what}: "
        f"{line.formula} = {line.numbers} = {line.payload:,} B"
        for line in answered.sums
    ]


def quiz_values(
    questions: Sequence[Question], results: Sequence[LessonResult], source_of: Callable[[Question], str]
) -> Mapping[str, object]:
    """The values of the page's template."""
    answered = [AnsweredQuestion(question, item) for question, item in zip(questions, results, strict=True)]
    return {
        "scattered": SCATTERED,
        "asked": [
            (item, arrays(item.question), sizes(item.question), source_of(item.question))
            for item in answered
            if item.result.ok
        ],
    }
