"""The table of arms."""

import pytest

from compare.run.arms import ARMS, CONTROLS, find_arm, parse_controls
from compare.run.errors import WorkError
from meshes.case import Case


def names(arm_name, case, **asked):
    return [cell.name for cell in find_arm(arm_name).cells(case, **asked)]


def test_each_arm_has_the_cells_that_the_design_names():
    case = Case.read("tp4pp2")
    cells = {name: [cell.name for cell in row.cells(case)] for name, row in ARMS.items()}
    assert cells == {"jax": ["tpu", "tpu+gspmd"], "torchxla": ["tpu", "tpu+shardy", "tpu+einsum"]}


def test_a_case_that_asks_for_einsum_has_no_cell_for_it():
    assert names("torchxla", Case.read("tp4pp2", attention="einsum")) == ["tpu", "tpu+shardy"]


def test_controls_are_asked_for_by_what_they_change():
    case = Case.read("tp4pp2")
    assert names("jax", case, controls=()) == ["tpu"]
    assert names("jax", case, controls=("style", "loop")) == ["tpu", "tpu+weights", "tpu+explicit", "tpu+unrolled"]
    assert names("torchxla", case.at(loop="unrolled"), controls=("attention", "loop")) == [
        "tpu",
        "tpu+einsum",
        "tpu+scan",
    ]
    assert names("jax", case.at(style="explicit"), controls=("style",)) == ["tpu", "tpu+pinned", "tpu+weights"]
    assert names("jax", case, controls=("libtpu",), libtpu="0.0.40") == ["tpu", "tpu+libtpu-0.0.40"]
    assert names("jax", case, controls=("libtpu",)) == ["tpu", "tpu+libtpu-0.0.41"]


def test_a_control_changes_one_thing():
    case = Case.read("tp4pp2")
    for row in ARMS.values():
        for cell in row.cells(case, controls=CONTROLS)[1:]:
            assert len(cell.changes) + bool(cell.libtpu) + bool(cell.lowering) == 1, cell
            assert cell.control == (*cell.changes, "tracer" if cell.lowering else "libtpu")[0]


def test_controls_are_read_from_words():
    assert parse_controls("none") == ()
    assert parse_controls("all") == CONTROLS
    assert parse_controls("style, partitioner") == ("partitioner", "style")
    with pytest.raises(
        WorkError, match="unknown control 'speed'; choose from partitioner, attention, style, loop, tracer, lib"
    ):
        parse_controls("style,speed")


def test_one_lowering_serves_both_partitioners_where_the_arm_does_not_heed_them():
    case = Case.read("tp4pp2", phases=("decode",), partitioner="shardy")
    assert find_arm("torchxla").worker_case(case).partitioner == "native"
    assert find_arm("jax").worker_case(case) == case


def test_an_unknown_arm_is_refused_with_those_that_are_known():
    with pytest.raises(WorkError, match="unknown arm 'tf'; choose from jax, torchxla"):
        find_arm("tf")
