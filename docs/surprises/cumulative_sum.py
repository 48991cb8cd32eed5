"""A cumulative sum along a split dim becomes seven collectives (jax-ml/jax#21403).

Asked: `cumsum` over 65,536 rows that are split over `data`.

Why: the compiler makes it a tree before the partitioner sees it: sums of 128 rows, sums of those, and so on.  The upper
levels have fewer rows than would divide among the devices evenly, so they are padded, cut and moved about, each by
collectives of its own.  Few bytes, but seven waits one after the other.  (On GPUs the result was wrong, at the time.)

Instead: give the parts a dim of their own: a cumulative sum in each, and the totals of eight parts, gathered once.

Symptom: many small collectives for one operation; `cumsum` communicates
"""

import jax
import jax.numpy as jnp
from jax.lax import with_sharding_constraint
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))
SPLIT = NamedSharding(MESH, P("data"))


def lowered(function):
    rows = jax.ShapeDtypeStruct((65536, 1024), "float32", sharding=SPLIT)
    return jax.jit(function, out_shardings=SPLIT).trace(rows).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(lambda rows: jnp.cumsum(rows, axis=0))


def in_parts(rows):
    parts = jnp.cumsum(rows.reshape(8, 8192, 1024), axis=1)
    totals = with_sharding_constraint(parts[:, -1], NamedSharding(MESH, P()))
    before = jnp.cumsum(totals, axis=0) - totals
    return (parts + before[:, None]).reshape(65536, 1024)


def instead():
    return lowered(in_parts)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
