"""The layout: names of dims in, shardings out; what it cannot place it refuses."""

import json
from typing import Any

import pytest

from tests.torchxla_impl.workers import script

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All of it from one process: PyTorch/XLA takes seconds to start."""
    answer: dict[str, Any] = json.loads(script("verbs.py", tmp_path_factory.mktemp("verbs")))
    return answer


def test_dims_name_their_axes(results: dict[str, Any]) -> None:
    assert results["specs"] == {
        "batch": [["dp", "ep"]],
        "stages batch seq embed": ["pp", ["dp", "ep"], "cp", None],
        "vocab embed": ["tp", None],
        "": [],
    }


def test_shardings_are_written_as_xla_writes_them(results: dict[str, Any]) -> None:
    """Device ids are row-major over dp, pp, tp, two of each: 4·dp + 2·pp + tp."""
    assert results["sharding"] == {
        "embed": "{replicated}",
        "vocab embed": "{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}",
        "stages batch seq ffn": "{devices=[2,2,1,2]0,1,4,5,2,3,6,7}",
    }


def test_several_axes_split_one_dim_the_first_outermost(results: dict[str, Any]) -> None:
    """Device ids are 4·dp + 2·cp + tp; groups go over cp, then dp."""
    assert results["sharding of several"] == "{devices=[4,1,2]0,1,4,5,2,3,6,7 last_tile_dim_replicate}"


def test_the_stream_is_split_over_tp_where_the_rules_say_so(results: dict[str, Any]) -> None:
    """In decode a token has one position: the sequences are split instead."""
    assert results["streams"] == {
        "tp8 prefill": ["pp", ["dp", "ep"], "cp", None],
        "tp8+sp prefill": ["pp", ["dp", "ep"], ["cp", "tp"], None],
        "tp8+sp decode": ["pp", ["dp", "ep", "tp"], None, None],
        "cp2tp4+sp prefill": ["pp", ["dp", "ep"], ["cp", "tp"], None],
    }


def test_more_than_five_dims_are_refused(results: dict[str, Any]) -> None:
    assert results["rank"].endswith("names 6 dims; an array is sharded over at most 5")


def test_dims_that_are_not_the_tensors_are_refused(results: dict[str, Any]) -> None:
    assert results["dims"] == "'batch seq' names 2 dims; the array has 3"


def test_another_number_of_devices_is_said(results: dict[str, Any]) -> None:
    assert results["devices"] == "mesh dp16 needs 16 devices; here are 8"


def test_a_shift_moves_each_stage_to_the_next_and_nothing_wraps(results: dict[str, Any]) -> None:
    assert results["shift"] == [9.0, 1.0, 2.0, 3.0]


def test_a_single_stage_takes_what_comes(results: dict[str, Any]) -> None:
    assert results["shift of one"] == [9.0]


def test_the_last_stage_chooses(results: dict[str, Any]) -> None:
    assert results["collect"] == [[9, 10, 11], [21, 22, 23]]
    assert results["collect of one"] == [[0, 1, 2], [12, 13, 14]]


def test_of_the_parts_of_a_sequence_the_last_chooses(results: dict[str, Any]) -> None:
    assert results["collect parts"] == [[7, 9, 11], [19, 21, 23]]


def test_of_the_shards_of_a_part_the_last_has_its_last_token(results: dict[str, Any]) -> None:
    assert results["last"] == [1.0, 3.0, 5.0, 7.0]
    assert results["last of decode"] == [0.0, 4.0]


def test_the_best_score_wins_and_of_equals_the_first(results: dict[str, Any]) -> None:
    assert results["sample"] == [1, 0]


def test_microbatches_are_dealt_out_and_taken_back(results: dict[str, Any]) -> None:
    assert results["dealt"] == [[0, 2, 4], [1, 3, 5]]
    assert results["taken back"] == [0, 1, 2, 3, 4, 5]
