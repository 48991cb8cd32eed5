"""An attention mask is sent, instead of the ids that it is made of (AI-Hypercomputer/maxtext#4571).

Symptom: all-to-all in attention mask; segment ids; packed sequences; sequence or context parallel; gathers O(S²) bytes

Asked: attention among the tokens of the same document.  The ids of the documents come as the tokens do, sequences split
over `data` and positions over `model`; in attention it is the heads that are split over `model`.

Why: `ids[:, :, None] == ids[:, None, :]` has queries split on its left, and keys on its right.  The partitioner keeps
the left, and moves the split of the right, when it is already as large as the mask: an exchange of `[batch, queries,
keys]` numbers.  Then the axis is taken by the heads, and the mask is gathered.  (In the report the mask stayed split by
queries, and there was the exchange alone; for that the compiler now gathers the ids.)

Instead: pin the ids whole over `model`, before they are compared.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def whole(ids):
    return jax.lax.with_sharding_constraint(ids, NamedSharding(MESH, P("data")))


def attention(ids, q, k, v):
    same = ids[:, :, None] == ids[:, None, :]
    scores = jnp.einsum("bqnh,bknh->bnqk", q, k)
    return jnp.einsum("bnqk,bknh->bqnh", jax.nn.softmax(jnp.where(same[:, None], scores, -1e9)), v)


def lowered(function):
    ids, heads = split((8, 4096), "data", "model", dtype="int32"), split((8, 4096, 16, 64), "data", None, "model")
    made = jax.jit(function, out_shardings=heads.sharding)
    return made.trace(ids, heads, heads, heads).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(attention)


def instead():
    return lowered(lambda ids, q, k, v: attention(whole(ids), q, k, v))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
