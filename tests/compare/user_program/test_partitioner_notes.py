"""What the partitioner decided by itself is told: results that it splits, and tensors that it makes whole."""

import pytest

from compare import collectives
from compare.compile.rematerialised import find_rematerialised
from tests.compare.split_programs import compile_split

WARNS = (
    "W1127 23:21:06.81 32128 spmd_partitioner.cc:654] [SPMD] Involuntary full rematerialization. The compiler cannot go"
)
ADD = (
    'add.1 = f32[4,8]{1,0} add(%p, %p), sharding={devices=[2,1]<=[2]}, metadata={op_name="jit(f)/add" stack_frame_id=7}'
)
LOG = f"""I1127 a line that says nothing
{WARNS} from sharding {{devices=[2,1]<=[2]}} to {{devices=[1,2]<=[2]}} efficiently for HLO operation %{ADD}. As the last
{WARNS} from sharding {{devices=[2,1]<=[2]}} to {{devices=[1,2]<=[2]}} efficiently for HLO operation %{ADD}. As the last
{WARNS} from sharding {{replicated}} to {{devices=[1,2]<=[2]}} efficiently for HLO operation %p = s32[] parameter(0). As
"""


def lowered(step, split, out=None):
    """On x=4, y=2, of one bf16[256,256,256] that is split so."""
    import jax
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((4, 2), ("x", "y"))
    given = jax.ShapeDtypeStruct((256,) * 3, "bfloat16", sharding=NamedSharding(mesh, PartitionSpec(*split)))
    options = {} if out is None else {"out_shardings": NamedSharding(mesh, PartitionSpec(*out))}
    return jax.jit(step, **options).trace(given).lower(lowering_platforms=("tpu",))


def test_a_log_has_each_tensor_once():
    assert [tuple(row.values()) for row in find_rematerialised(LOG)] == [
        ("add.1", "jit(f)/add", "f32[4,8]", "{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}"),
        ("p", "", "s32[]", "{replicated}", "{devices=[1,2]<=[2]}"),
    ]


@pytest.mark.slow
def test_a_tensor_that_is_made_whole_is_named_with_both_splits_and_its_line(tmp_path):
    """A device has 256/2 · 256 · 256/4; jax-ml/jax#21562."""
    program = lowered(lambda a: a + a, ("y", None, "x"), (None, ("x", "y"), None))
    table = collectives(program, topology="v5e:2x4")
    (note,) = table.notes
    assert "bf16[128,256,64] of a device, from [y, -, x] to [-, x·y, -]" in note
    assert f"add ({table[0].source_line})" in note
    table.save(tmp_path / "saved")
    assert collectives(tmp_path / "saved").notes == table.notes


@pytest.mark.slow
def test_results_that_are_left_open_are_told_only_where_the_compiler_splits_them():
    (note,) = collectives(lowered(lambda a: (a * 2, a.sum(), a.T), ("y", None, "x")), topology="v5e:2x4").notes
    assert note == "results without a sharding are split as the compiler chose: 0 as [y, -, x]; 2 as [x, -, y]"
    assert collectives(lowered(lambda a: a * 2, ("y", None, "x"), ("y", None, "x")), topology="v5e:2x4").notes == ()


@pytest.mark.slow
def test_a_result_that_the_compiler_makes_a_constant_is_told():
    """Places of the largest along a split dim are zeros, where they are all that is asked for (jax-ml/jax#19271)."""
    import jax
    import jax.numpy as jnp

    arrays = [((64, 1024), ("dp", None)), ((1024, 32000), (None, "tp"))]
    (note,) = compile_split(lambda rows, weight: jax.lax.top_k(rows @ weight, 8)[1], arrays, ("dp",)).notes
    assert note.startswith("result 0 of the compiled program depends on no argument: what")
    # Zeros that the program asks for are its own.
    assert compile_split(lambda rows, weight: (rows * 2, jnp.zeros(3)), arrays, [("dp",), ()]).notes == ()
