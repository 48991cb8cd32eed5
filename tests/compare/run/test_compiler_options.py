"""Cells of the same program with other compiler options."""

import json

import pytest

from compare.report.compiler_options import CELL, OPTIONS, option_of
from compare.report.controls import describe_change, describe_control
from compare.run.arms import ARMS, parse_options
from compare.run.errors import WorkError
from compare.run.tasks import compile_task
from meshes.case import Case


@pytest.fixture
def program(tmp_path):
    """What a lowering left."""
    (tmp_path / "program.mlirbc").write_bytes(b"ML")
    about = {"compile_options": {"num_partitions": 8, "flags": {"xla_tpu_given": "1"}}}
    (tmp_path / "about.json").write_text(json.dumps(about))
    return tmp_path


def test_options_are_cells_that_are_compiled_only_where_they_are_named():
    case = Case.read("tp8", model_name="tiny")
    assert not [cell for arm in ARMS.values() for cell in arm.cells(case) if option_of(cell.name)]
    words = ("async-off", "scheduler-off")
    for arm in ARMS.values():
        cells = [cell for cell in arm.cells(case, controls=words) if cell.flags]
        assert [cell.name for cell in cells] == [f"{CELL}{word}" for word in words]
        assert [dict(cell.flags) for cell in cells] == [
            dict(OPTIONS[word].flags) for word in ("async-off", "scheduler-off")
        ]
        assert {cell.steps for cell in cells} == {("lower", "compile")}


def test_flags_join_those_of_the_program_and_make_another_key(program):
    case, arm = Case.read("tp8", model_name="tiny"), ARMS["jax"]
    default, changed, other = (
        compile_task(case, arm, program=program, flags=flags)
        for flags in ({}, {"xla_a": "false"}, {"xla_tpu_given": "2"})
    )
    flags = [json.loads(task.request)["compile_options"]["flags"] for task in (default, changed, other)]
    assert flags == [{"xla_tpu_given": "1"}, {"xla_tpu_given": "1", "xla_a": "false"}, {"xla_tpu_given": "2"}]
    assert len({default.key, changed.key, other.key}) == 3
    assert default.key == compile_task(case, arm, program=program).key


def test_words_are_read_and_a_wrong_one_says_which_there_are():
    assert parse_options("") == ()
    assert parse_options("all") == tuple(OPTIONS)
    assert parse_options("scheduler-off, async-off") == ("scheduler-off", "async-off")
    with pytest.raises(WorkError, match="unknown compiler options 'fast'; choose from async-off, "):
        parse_options("fast")


def test_reports_name_them():
    assert describe_control("tpu+xla-async-off") == "the same program compiled with asynchronous collectives off"
    assert describe_change("tpu+xla-scheduler-off") == "compiled without the latency-hiding scheduler"
    assert (option_of("tpu"), option_of("tpu+einsum")) == ("", "")
