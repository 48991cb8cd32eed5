"""Two split arrays are joined along the dim that is split, and both travel (jax-ml/jax#24576).

Asked: `concatenate` of two arrays whose rows are split over `data`; over `model` all are copies.

Why: rows of the first array belong in the first half of the result, which lies on half of the devices.  The partitioner
moves the split of each array to its columns, joins them there, and moves the split of the result back to rows: three
exchanges.  (In jax 0.4.34 arrays of one dim, which have no columns, came out doubled, as if summed over their copies as
well.)

Instead: stack along a new dim, which nothing splits.  Each device joins its own rows.

Symptom: all-to-all around `concatenate`; arrays resharded to be joined
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 4, "model": 2}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *arguments, out=()):
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P(*out)))
    return made.trace(*arguments).lower(lowering_platforms=("tpu",))


PARTS = split((4096, 1024), "data"), split((4096, 1024), "data")


def surprising():
    return lowered(lambda a, b: jnp.concatenate([a, b]), *PARTS, out=("data",))


def instead():
    return lowered(lambda a, b: jnp.stack([a, b], axis=1), *PARTS, out=("data",))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
