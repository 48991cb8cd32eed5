"""A decode step returns its logits, which nobody reads, and they are gathered (vllm-project/tpu-inference#73).

Symptom: all-gather of full logits in every decode step; output sharding of jit replicated; greedy sampling slow

Asked: the next token's id from logits whose 65,536 entries are split over `model`; the step returns both, and all
results are required whole over `model`.

Why: for the ids it is enough to send each device's largest entry and its place.  But what a program returns has to be
made, in the split that `out_shardings` says, whether it is read or not.

Instead: return the ids alone.  Where logits are wanted, for a few requests, return them split, as they are.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def step(hidden, table):
    logits = hidden @ table
    return jnp.argmax(logits, axis=1), logits


def lowered(function, *out):
    hidden, table = split((64, 1024), "data"), split((1024, 65536), None, "model")
    made = jax.jit(function, out_shardings=tuple(NamedSharding(MESH, dims) for dims in out))
    return made.trace(hidden, table).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(step, P("data"), P("data"))


def instead():
    return lowered(lambda hidden, table: step(hidden, table)[:1], P("data"))


def instead_split():
    return lowered(step, P("data"), P("data", "model"))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead, instead_split):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
