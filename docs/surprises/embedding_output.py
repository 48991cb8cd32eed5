"""An embedding's result is pinned without its batch, and the batch is gathered (sgl-project/sglang-jax#1083).

Asked: 64 tokens, split over `data`, are looked up in a table whose words are split over `model`; then a norm and a
projection.  The lookup's result is pinned to `P(None, None)`: the spec names the features alone.

Why: `None` in a spec is not "leave it": it is "not split".  So the rows of all tokens are gathered over `data`, and
every device computes the norm of all of them, of which it then needs its half.  The table has it at the line of the
lookup, behind the sum over `model` that a table of split words costs in any case.  (If the next operation cuts the
batch again at once, the compiler sees that the gather is for nothing: it is the norm in between that keeps it.)

Instead: name the axis of the batch in the spec; or `P.UNCONSTRAINED` for what is not yours to say (`instead_open`).

Symptom: all-gather after the embedding; batch gathered over the data axis; every data replica computes the whole batch
"""

import jax
import jax.numpy as jnp
from jax.lax import with_sharding_constraint
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def lowered(*dims):
    def embed(table, tokens, weight):
        x = with_sharding_constraint(table[tokens], NamedSharding(MESH, P(*dims)))
        return norm(x) @ weight

    arguments = split((32768, 1024), "model"), split((64,), "data", dtype="int32"), split((1024, 1024), None, "model")
    made = jax.jit(embed, out_shardings=NamedSharding(MESH, P("data", "model")))
    return made.trace(*arguments).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(None, None)


def instead():
    return lowered("data", None)


def instead_open():
    return lowered(P.UNCONSTRAINED, None)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead, instead_open):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
