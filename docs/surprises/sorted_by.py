"""Rows are put in the order of their keys, and every device has all of them (jax-ml/jax#35650).

Symptom: argsort, sort or fancy indexing of sharded array all-gathers; permute rows; shuffle along the sharded dim

Asked: `rows[argsort(keys)]`, both split over `data`.

Why: a row may go to any device, and which is known only when it runs.  A sort along a split dim gathers the keys, and
each device sorts all of them.  That is small.  But for rows at unknown places of a split dim the partitioner gathers
the rows, too, and each device picks its own.

Instead: split the columns while the rows are moved.  Each device has then all rows of a few columns; two exchanges.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))
SPLIT = NamedSharding(MESH, P("data"))


def lowered(function):
    keys, rows = (jax.ShapeDtypeStruct(shape, "float32", sharding=SPLIT) for shape in ((65536,), (65536, 256)))
    return jax.jit(function, out_shardings=SPLIT).trace(keys, rows).lower(lowering_platforms=("tpu",))


def by_columns(rows):
    return jax.lax.with_sharding_constraint(rows, NamedSharding(MESH, P(None, "data")))


def surprising():
    return lowered(lambda keys, rows: rows[jnp.argsort(keys)])


def instead():
    return lowered(lambda keys, rows: by_columns(by_columns(rows)[jnp.argsort(keys)]))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
