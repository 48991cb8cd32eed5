"""What a test of one's own model asks for, and what it is told."""

import pytest

from compare.contract.row import JudgeError
from compare.diff.own.expected import count_collectives, find_surprises
from tests.compare.verdict.toy_hlo import AXES, GATHER, HEAD, SUM, rows, wire

DATA = wire("all-reduce", "bf16[64]", over="data")


def test_rows_are_counted_by_kind_and_axes():
    assert count_collectives(rows(SUM, GATHER, SUM, DATA)) == {
        "all-reduce@tensor": 2,
        "all-gather@tensor": 1,
        "all-reduce@data": 1,
    }
    assert count_collectives(rows()) == {}


def test_what_is_expected_is_no_surprise():
    assert find_surprises(rows(SUM, SUM), {"all-reduce@tensor": 2}, axes=AXES) == []
    assert find_surprises(rows(), {}, axes=AXES) == []
    assert find_surprises(rows(), {"all-reduce@data": 0}, axes=AXES) == []


def test_more_less_and_others_are_surprises():
    surprises = find_surprises(rows(SUM, DATA), {"all-reduce@tensor": 2, "all-gather@data": 1}, axes=AXES)
    assert [(surprise.word, surprise.expected, surprise.found) for surprise in surprises] == [
        ("all-reduce@tensor", 2, 1),
        ("all-gather@data", 1, 0),
        ("all-reduce@data", 0, 1),
    ]


def test_axes_may_be_named_in_any_order():
    global_sum = (
        "all-reduce(X), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=add"
    )
    assert HEAD
    assert find_surprises(rows(f"bf16[8] bf16[8] {global_sum}"), {"all-reduce@tensor,data": 1}, axes=AXES) == []


@pytest.mark.parametrize(
    "word", ["all-reduce", "allreduce@tensor", "all-reduce@tp", "all-reduce@tensor,tensor", "@tensor"]
)
def test_a_word_that_could_never_be_found_is_refused(word):
    with pytest.raises(JudgeError):
        find_surprises(rows(SUM), {word: 1}, axes=AXES)


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(JudgeError, match="instructions, executions"):
        count_collectives(rows(SUM), count="bytes")
