"""Questions of the quiz: the same for the same seed, different for others, and their bytes by hand."""

import pytest

from compare.gallery.lesson_types.lesson import PROGRAMS, evaluate_formula
from compare.gallery.lessons import LESSONS
from compare.gallery.quiz.draw import FAMILIES, PAGE, draw_question
from compare.gallery.quiz.matmuls import moves_of

NAMES = {lesson.name for lesson in LESSONS}


def test_a_seed_always_asks_the_same() -> None:
    assert draw_question(7) == draw_question(7)
    assert len({str(draw_question(seed).lesson) for seed in range(200)}) > 150


def test_ten_in_a_row_are_ten_kinds_of_question() -> None:
    assert len(FAMILIES) > 10
    for first in (0, 33, 1000):
        assert len({draw_question(seed).lesson.title for seed in range(first, first + 10)}) >= 7


@pytest.mark.parametrize("first", [0, 500, 10**9, -300])
def test_every_question_can_be_asked_and_worked_out(first: int) -> None:
    for seed in range(first, first + 300):
        question = draw_question(seed)
        lesson = question.lesson
        assert question.seed == seed
        assert question.program in PROGRAMS
        assert question.rules, seed
        assert set(question.rules) <= NAMES
        for array in lesson.arrays:
            for size, axis in zip(lesson.shape(array), lesson.splits[array], strict=True):
                assert axis is None or size % lesson.mesh[axis] == 0, (seed, array)
        for move in lesson.needs:
            assert lesson.payload(move) > 0, seed
            assert set(move.axes) <= set(lesson.mesh), seed


def test_the_page_asks_every_kind() -> None:
    assert len(PAGE) >= 2 * len(FAMILIES)


def test_a_third_of_the_questions_are_on_the_partitioner_or_on_two_axes_and_all_kinds_of_programs_are_asked() -> None:
    questions = [draw_question(seed) for seed in range(310)]
    decided = [question for question in questions if any(name.startswith("decide-") for name in question.rules)]
    assert len(decided) >= 310 / 3
    assert sum(len(question.lesson.mesh) == 2 for question in questions) >= 310 / 5
    for program in ("jax/shardy", "jax/gspmd", "torchxla/gspmd"):
        assert sum(question.program == program for question in questions) >= 30, program
    assert sum(question.program == "torchxla/gspmd" and len(question.lesson.mesh) == 2 for question in questions) >= 10


def test_sizes_lie_on_both_sides_of_a_border() -> None:
    """One contracting dim split, y whole: the sum below D = F or D = T, the gather from there on."""
    relations = set()
    for seed in range(0, 3100):
        question = draw_question(seed)
        if question.rules[0] in ("decide-sum-narrow", "decide-sum-wide"):
            sizes, in_x = question.lesson.sizes, question.lesson.splits["x"][1] is not None
            border = sizes["F" if in_x else "T"] - sizes["D"]
            (move,) = question.lesson.needs
            assert (move.kind == "all-reduce") == (border < 0), seed
            relations.add(border)
    assert relations == {-128, 0, 128}


LETTERS = {"T": 64, "D": 32, "F": 16, "dp": 2, "tp": 4}


@pytest.mark.parametrize(
    ("cases", "moves"),
    [
        # x[T/dp, D/tp] w[D/tp, F] y[T/dp, F]: partial sums of half of y
        ({"dp": ("T", "", "T"), "tp": ("D", "D", "")}, [("all-reduce@tp", 64 * 16 * 2 // 2)]),
        # x[T/dp, D/tp] w[D/tp, F/dp] y[T/dp, F]: w's own quarter of rows, both halves of its columns
        (
            {"dp": ("T", "F", "T"), "tp": ("D", "D", "")},
            [("all-gather@dp", 32 * 16 * 2 // 4), ("all-reduce@tp", 64 * 16 * 2 // 2)],
        ),
        # the same, y[T/dp, F/tp]
        (
            {"dp": ("T", "F", "T"), "tp": ("D", "D", "F")},
            [("all-gather@dp", 32 * 16 * 2 // 4), ("reduce-scatter@tp", 64 * 16 * 2 // 2)],
        ),
        # x[T/dp, D/tp] w[D/dp, F/tp] y[T/dp, F/tp]
        (
            {"dp": ("T", "D", "T"), "tp": ("D", "F", "F")},
            [("all-gather@dp", 32 * 16 * 2 // 4), ("all-gather@tp", 64 * 32 * 2 // 2)],
        ),
        ({"tp": ("T", "F", "F")}, [("all-gather@tp", 64 * 32 * 2)]),
        ({"tp": ("", "F", "")}, [("all-gather@tp", 64 * 16 * 2)]),
        ({"tp": ("", "F", "F")}, []),
    ],
)
def test_a_matmul_is_worked_out_one_axis_at_a_time(cases, moves) -> None:
    assert [(move.collective, evaluate_formula(move.formula, LETTERS)) for move in moves_of(cases)] == moves
