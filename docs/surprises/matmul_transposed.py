"""A matmul that needs no communication communicates, since its result is required in another split (openxla/xla#4062).

Asked: `(a @ b).T` with the rows of a split over `x` and the columns of b over `y`; the result's rows over `x`.

Why: each device has the inputs of one block of the product.  The columns of the product, which are the rows of the
transposed result, are split over `y`.  But the result is required split over `x`, and the partitioner makes that split
before the matmul: it moves both operands.

Instead: ask for the split that the operands give, rows over `y` and columns over `x`.

Symptom: collective-permutes around a matmul; both operands of a matmul are moved; transposed result communicates
"""

import jax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"x": 4, "y": 2}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *arguments, out=()):
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P(*out)))
    return made.trace(*arguments).lower(lowering_platforms=("tpu",))


PARTS = split((8192, 8192), "x", None), split((8192, 8192), None, "y")


def surprising():
    return lowered(lambda a, b: (a @ b).T, *PARTS, out=("x", "y"))


def instead():
    return lowered(lambda a, b: (a @ b).T, *PARTS, out=("y", "x"))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
