"""The optimizer's state is split, and after one step the weights are, too (google/flax#5172).

Asked: a training step in which every device has the weights whole and a part of the momentum (ZeRO-1); the batch is
split over both axes.  Nothing is said about the results.

Why: `weight - rate * momentum` is of two operands, one whole and one split, and the compiler may leave the result split
(with explicit axes that is the rule of types: the result is `P("x", "y")`).  In the first step that is one collective
less, and nothing looks wrong (`surprising_first_step`); only the sizes of its results tell.  The second step gets
weights that are split: it is compiled again, and gathers them in its forward pass, at the matmul (`surprising`).  From
then on the weights are gathered wherever they are used, by an evaluation as well.

Instead: pin the weights' result (`out_shardings`, or a constraint in the optimizer).  Here that costs the same bytes:
the gather stands behind the update, once a step however often the weights are used, and the program stays one.

Symptom: weights change their sharding after one step; the second step compiles again; parameters sharded like the
optimizer's state; all-gather of a weight that should be replicated
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"x": 2, "y": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims):
    return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(MESH, P(*dims)))


BATCH, WHOLE, PARTS = split((8192, 1024), ("x", "y")), split((1024, 1024)), split((1024, 1024), "x", "y")


def step(weight, momentum, batch):
    gradient = jax.grad(lambda weight: jnp.sum(jnp.tanh(batch @ weight), dtype="float32"))(weight)
    momentum = 0.9 * momentum + gradient
    return weight - 0.01 * momentum, momentum


def lowered(weight, out=None):
    return jax.jit(step, out_shardings=out).trace(weight, PARTS, BATCH).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(PARTS)


def surprising_first_step():
    return lowered(WHOLE)


def instead():
    return lowered(WHOLE, out=(WHOLE.sharding, PARTS.sharding))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_first_step, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
