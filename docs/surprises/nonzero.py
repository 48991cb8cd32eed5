"""Where the numbers are that are not zero: thirteen collectives, one after the other (jax-ml/jax#23675).

Symptom: jnp.nonzero, argwhere, where or BCOO.fromdense slow on sharded array; many small collective-permutes; hangs

Asked: `nonzero` of a sparse `[4096, 4096]` whose rows are split over `data`.  Each device could look through its own.

Why: the result is one list in order, so where an entry goes depends on how many there are before it, on all devices.
That is a cumulative sum along a split dim, as in [cumulative_sum.py](cumulative_sum.py), and a sum over all devices of
lists to which each adds its own.

Instead: a list for each row, padded to a length of its own.  Rows know nothing of each other.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))
ROWS = NamedSharding(MESH, P("data"))


def lowered(function):
    matrix = jax.ShapeDtypeStruct((4096, 4096), "float32", sharding=ROWS)
    return jax.jit(function, out_shardings=ROWS).trace(matrix).lower(lowering_platforms=("tpu",))


def of_one_row(row):
    return jnp.nonzero(row, size=64, fill_value=-1)[0]


def surprising():
    return lowered(lambda matrix: jnp.nonzero(matrix, size=65536))


def instead():
    return lowered(jax.vmap(of_one_row))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
