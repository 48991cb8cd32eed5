"""A training step of FSDP, compiled: what is gathered when, counted from the program as it is written."""

from dataclasses import replace

import pytest

from compare import collectives
from compare.render.training_parts import BACKWARD, FORWARD, RECOMPUTED, REST, part_of_step, training_lines
from tests.compare.verdict.programs import collective

L, B, D, F = 8, 64, 512, 1024
GATHER = D * F * 2 * 3 // 4
"""Bytes that a device sends for one of the two weights of a layer, over four."""


@pytest.mark.parametrize(
    ("op_name", "part"),
    [
        ("jit(step)/jvp()/while/body/closed_call/dot_general", FORWARD),
        ("jit(step)/transpose(jvp())/while/body/closed_call/dot_general", BACKWARD),
        ("jit(step)/transpose(jvp())/while/body/closed_call/checkpoint/rematted_computation/dot_general", RECOMPUTED),
        ("jit(step)/add", REST),
        ("", REST),
    ],
)
def test_the_path_tells_the_part(op_name, part):
    assert part_of_step(op_name) == part


def test_an_inference_step_has_no_parts():
    assert training_lines([collective("tp4", "all-reduce", "tp", "layer.mlp.down", 8)]) == []


def compile_step(*, checkpointed):
    # Not where tests are collected: others say first how many devices JAX has.
    import jax
    import jax.numpy as jnp
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((4,), ("fsdp",))

    def split(shape, *dims):
        return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(mesh, PartitionSpec(*dims)))

    def layer(x, weights):
        hidden = jax.nn.relu(x @ weights[0])
        return jax.lax.with_sharding_constraint(
            x + hidden @ weights[1], NamedSharding(mesh, PartitionSpec("fsdp"))
        ), None

    def loss(up, down, x):
        x, _ = jax.lax.scan(jax.checkpoint(layer) if checkpointed else layer, x, (up, down))
        return jnp.sum(x.astype(jnp.float32))

    arrays = split((L, D, F), None, "fsdp"), split((L, F, D), None, None, "fsdp"), split((B, D), "fsdp")
    out = tuple(array.sharding for array in arrays[:2])
    lowered = (
        jax.jit(jax.grad(loss, argnums=(0, 1)), out_shardings=out).trace(*arrays).lower(lowering_platforms=("tpu",))
    )
    return collectives(lowered, topology="v5e:2x2")


@pytest.mark.slow
def test_each_weight_is_gathered_in_forward_and_again():
    table = compile_step(checkpointed=False)
    lines = training_lines(table.rows)
    assert lines[0].split() == ["forward", "2", f"{2 * L * GATHER:,}", "B"]
    assert lines[-1] == "2 arguments are gathered in forward and in backward (up, down)"


@pytest.mark.slow
def test_what_is_checkpointed_is_gathered_when_it_is_recomputed():
    """The hidden activation is made again, for which the first weight comes."""
    lines = training_lines(compile_step(checkpointed=True).rows)
    assert lines[1].split() == ["recomputed", "1", f"{L * GATHER:,}", "B"]
    assert lines[-2:] == [
        "1 argument is gathered in forward and in backward (down)",
        "1 argument is gathered in forward and in recomputed (up)",
    ]


def test_of_many_arguments_three_are_named():
    def gather(part, number):
        row = collective("tp4", "all-gather", "tp", "?", 8, parameters=(number,))
        operand = replace(row.operands[0], arguments=(f"w[{number}]",))
        return replace(row, name=f"{part}.{number}", op_name=f"jit(f)/{part}/dot", operands=(operand,))

    rows = [gather(part, number) for part in ("jvp()", "transpose(jvp())") for number in range(5)]
    assert training_lines(rows)[-1] == (
        "5 arguments are gathered in forward and in backward (w[0], w[1], w[2] and 2 more)"
    )
