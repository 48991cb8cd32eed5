"""Answers of the quiz: many ways to write one, and one line for what is none."""

import pytest

from compare.gallery.answers import AnswerError, read_answer

MESH = {"dp": 2, "tp": 4}


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ("all-reduce@tp", {"all-reduce@tp": 1}),
        ("2 all-gather@dp, all-reduce@tp", {"all-gather@dp": 2, "all-reduce@tp": 1}),
        ("2×all-gather@dp  3x all-reduce@tp", {"all-gather@dp": 2, "all-reduce@tp": 3}),
        ("AR@tp,ag@dp", {"all-reduce@tp": 1, "all-gather@dp": 1}),
        ("all-reduce@tp,dp; rs@tp", {"all-reduce@dp,tp": 1, "reduce-scatter@tp": 1}),
        ("2 ag@dp, 2 ag@dp", {"all-gather@dp": 4}),
        ("permute @ tp", {"collective-permute@tp": 1}),
        ("a2a@tp:sub", {"all-to-all@tp:sub": 1}),
        (" Free ", {}),
        ("nothing", {}),
        ("0 all-reduce@tp", {}),
    ],
)
def test_an_answer_can_be_written_in_many_ways(words: str, counts: dict[str, int]) -> None:
    assert dict(read_answer(words, MESH).counts) == counts


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "'' is no answer: write N× kind@axes"),
        ("all-reduce", "'all-reduce' is no answer: write N× kind@axes"),
        ("all-reduce@tp or so", "'all-reduce@tp or so' is no answer"),
        ("all-reduce@pp", "'pp' is no axis of this mesh, which has dp and tp"),
        ("all-broadcast@tp", "'all-broadcast' is no kind of collective; there are all-reduce, all-gather, "),
        ("\x1b[31m\nall-reduce@tp", r"'\x1b[31m\nall-reduce@tp' is no answer"),
        ("9" * 400 + " all-reduce@tp", "is no answer"),
        ("ar@tp " * 10_000 + "!", "is no answer"),
    ],
)
def test_what_is_no_answer_gets_one_line_that_says_what_is_one(words: str, says: str) -> None:
    with pytest.raises(AnswerError) as refusal:
        read_answer(words, MESH)
    assert says in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 300


def test_right_is_the_same_kinds_over_the_same_axes_each_as_often() -> None:
    truth = {"all-gather@dp": 16, "all-reduce@tp": 1}
    assert read_answer("16 all-gather@dp, 1× all-reduce@tp", MESH).is_right(truth)
    assert read_answer("all-reduce@tp 16 all-gather@dp", MESH).is_right(truth)  # none said is 1
    assert not read_answer("all-gather@dp, all-reduce@tp", MESH).is_right(truth)
    assert not read_answer("16 all-gather@dp, 2 all-reduce@tp", MESH).is_right(truth)
    assert not read_answer("16 all-gather@dp", MESH).is_right(truth)
    assert not read_answer("16 all-gather@dp, all-reduce@tp, all-reduce@dp", MESH).is_right(truth)
    assert not read_answer("16 all-gather@tp, all-reduce@tp", MESH).is_right(truth)
    assert read_answer("free", MESH).is_right({})
    assert not read_answer("free", MESH).is_right(truth)


def test_a_wrong_number_is_told_from_a_wrong_collective() -> None:
    truth = {"all-gather@dp": 16, "all-reduce@tp": 1}
    assert read_answer("all-gather@dp, all-reduce@tp", MESH).is_miscounted(truth)
    assert not read_answer("16 all-gather@dp, all-reduce@tp", MESH).is_miscounted(truth)
    assert not read_answer("all-gather@tp, all-reduce@tp", MESH).is_miscounted(truth)
    assert not read_answer("free", MESH).is_miscounted({})
