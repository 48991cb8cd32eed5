"""Sequences and positions become one dim of tokens, and the tokens travel (marin-community/marin#3458).

Symptom: flatten batch and sequence before the MoE router; reshape of a sharded activation; all-to-all before top_k

Asked: each token's two experts.  Sequences are split over `data` and positions over `seq`; the router gets
`x.reshape(tokens, features)`, and its result is required split over both.

Why: the first device has the first quarter of the first half of the sequences: 256 tokens of each of four sequences,
no block of rows.  But a split of the dim of tokens over both axes means blocks, 1,024 tokens that follow each other.
The partitioner makes the blocks before the router, where a token is still 512 numbers.

Instead: leave the two dims as they are.  A matmul or a `top_k` over the last dim does not mind.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "seq": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims):
    return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *out):
    x, router = split((8, 1024, 512), "data", "seq"), split((512, 64))
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P(*out)))
    return made.trace(x, router).lower(lowering_platforms=("tpu",))


def experts(x, router):
    return jax.lax.top_k(x @ router, 2)[1]


def surprising():
    return lowered(lambda x, router: experts(jnp.reshape(x, (-1, 512)), router), ("data", "seq"))


def instead():
    return lowered(experts, "data", "seq")


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
