"""Vocabulary and positions are split over one axis, and looked-up rows are summed on all (openxla/xla#42481).

Symptom: embedding lookup with vocab and sequence on the same axis; jnp.take all-reduce; collective-permute of ids

Asked: `take(table, ids)`, the table's rows split over `model`, sequences over `data`, positions over `model` again; the
result split as the ids are.

Why: a row is on one device of `model`, and the ids of all devices have to be looked up there.  So the ids are gathered,
each device looks up what it has, and the results are summed.  Each device needs the sum for its own positions only, a
reduce-scatter.  But the partitioner sums all of them on all; and the four devices that sum are not those whose ids they
are, so ids are moved before, and rows behind.  (The report is of the gradient, whose sum came too late, and was wrong.)

Instead: pin the ids whole over `model`, and the result as well, before its split is asked for; the ids alone change
nothing.  Two collectives, and half the bytes.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(function):
    table, ids = split((32768, 512), "model", dtype="float32"), split((16, 1024), "data", "model", dtype="int32")
    return jax.jit(function, out_shardings=ids.sharding).trace(table, ids).lower(lowering_platforms=("tpu",))


def whole(tensor):
    return jax.lax.with_sharding_constraint(tensor, NamedSharding(MESH, P("data")))


def take(table, ids):
    return jnp.take(table, ids, axis=0)


def surprising():
    return lowered(take)


def instead():
    return lowered(lambda table, ids: whole(take(table, whole(ids))))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
