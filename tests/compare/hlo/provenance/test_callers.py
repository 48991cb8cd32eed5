"""Rows of one source line are told apart by the call that differs, and a scope map finds the function that called."""

from functools import cache
from itertools import starmap

import pytest

from compare import collectives
from compare.hlo.collectives.collectives import tell_apart
from compare.hlo.text.metadata import Frame
from tests.compare.split_programs import compile_split, lower_split


def stacks(*words):
    """Of frames as `file:line function`, innermost first, joined by `<`."""
    frames = [[part.replace(":", " ").split() for part in word.split("<")] for word in words]
    return [tuple(starmap(Frame, stack)) for stack in frames]


def test_the_innermost_call_that_differs_is_told():
    found = tell_apart(
        stacks(
            "linears.py:102 Dense<attention.py:614 query<layer.py:9 call",
            "linears.py:102 Dense<attention.py:733 out<layer.py:9 call",
            "linears.py:102 Dense<mlp.py:529 call<layer.py:9 call",
        )
    )
    assert found == ["attention.py:614, query", "attention.py:733, out", "mlp.py:529, call"]


def test_calls_of_one_function_are_told_by_what_calls_it():
    found = tell_apart(stacks("dense.py:2<project.py:5<a.py:1", "dense.py:2<project.py:5<a.py:7", "dense.py:2<b.py:3"))
    assert found == ["a.py:1", "a.py:7", "b.py:3"]


def test_pieces_of_one_call_and_other_lines_are_not_told_apart():
    found = tell_apart([*stacks("dense.py:2<a.py:1", "dense.py:2<a.py:1", "other.py:4<a.py:7"), (), ()])
    assert found == [None] * 5


def test_where_one_stack_is_the_others_end_the_longer_is_told():
    assert tell_apart(stacks("dense.py:2", "dense.py:2<a.py:1 f")) == [None, "a.py:1, f"]


def dense(x, weight):
    return x @ weight


class Block:
    def project(self, x, weight):
        return dense(x, weight)

    def contract(self, x, weight):
        return dense(x, weight)

    def __call__(self, x, wide, out, down):
        return self.contract(self.project(x, out) @ wide, down)


TALL, WIDE = ((2048, 1024), ("tp", None)), ((1024, 4096), (None, "tp"))
ARRAYS = [((64, 2048), ("dp", "tp")), WIDE, TALL, ((4096, 1024), ("tp", None))]


@cache
def lowered():
    """Once: a program that is lowered from another line is compiled anew."""
    return lower_split(Block(), ARRAYS, ("dp", None))


def sums(**options):
    """Of two row-parallel matmuls, both written by `dense`."""
    return [row for row in collectives(lowered(), topology="v5e:2x4", **options) if row.kind == "all-reduce"]


@pytest.mark.slow
def test_a_compiled_program_tells_which_method_called_the_helper():
    rows = sums()
    assert len({row.source_line for row in rows}) == 1
    assert [row.caller.rpartition(", ")[2] for row in rows] == ["Block.project", "Block.contract"]


def test_a_scope_map_names_functions_and_lines():
    line = Block.contract.__code__.co_firstlineno + 1
    found = sums(scopes={r"\.project$": "layer.attention.out", rf"test_callers\.py:{line}$": "layer.mlp.down"})
    assert [row.scope for row in found] == ["layer.attention.out", "layer.mlp.down"]


def test_a_path_is_asked_before_the_functions_around_it():
    assert {row.scope for row in sums(scopes={"Block.project": "layer.attention.out", "dot_general": "head"})} == {
        "head"
    }


@pytest.mark.slow
def test_of_two_sums_in_one_the_larger_is_named_too():
    """XLA joins them under the name of the first; [32, 64] and [32, 1024] of bf16 on a device."""
    import jax

    def step(x, few, many):
        with jax.named_scope("few"):
            small = x @ few
        with jax.named_scope("many"):
            return jax.nn.relu(small), jax.nn.relu(x @ many)

    arrays = [((64, 2048), ("dp", "tp")), ((2048, 64), ("tp", None)), ((2048, 1024), ("tp", None))]
    table = compile_split(step, arrays, [("dp", None)] * 2)
    (row,) = table
    assert row.op_name == "jit(step)/few/dot_general"
    assert "65,536 B of it many, " in " ".join(str(table).split())
