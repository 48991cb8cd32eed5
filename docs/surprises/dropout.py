"""Dropout of a split batch sends random bits around (jax-ml/jax#14559, jax-ml/jax#15895).

Symptom: jax.random slow under jit, fast under pmap; dropout slows down data parallel training; threefry all-to-all

Asked: dropout of a batch that is split over `data`, with `jax_threefry_partitionable` off: so it was before jax 0.5,
and so it still is where a project wants the numbers of then.

Why: then the bits are two at a time, from a count cut in halves: what the first half of the devices need is made
together with what the second half needs.  The halves are cut out and joined along the split dim, and travel.

Instead: leave the setting on, as it now is by default.  Each number comes from its own place alone.  The bits are
others than before.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))
SPLIT = NamedSharding(MESH, P("data"))


def dropout(x):
    kept = jax.random.bernoulli(jax.random.key(0), 0.9, x.shape)
    return jnp.where(kept, x / 0.9, 0)


def lowered(partitionable):
    x = jax.ShapeDtypeStruct((512, 1024, 64), "float32", sharding=SPLIT)
    with jax.threefry_partitionable(partitionable):
        return jax.jit(dropout, out_shardings=SPLIT).trace(x).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(partitionable=False)


def instead():
    return lowered(partitionable=True)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
