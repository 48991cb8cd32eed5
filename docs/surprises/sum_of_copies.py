"""A sum of what all devices have a copy of is computed by all, and nothing is shared out (openxla/xla#5963).

Symptom: replicated compute; global norm of replicated gradients; no collectives, yet no faster with more devices

Asked: the norm of a gradient of `[8192, 8192]`, of which each of eight devices has a copy.

Why: the partitioner follows the splits of what comes in and what goes out.  Here nothing is split, so each device reads
all 128 MB, and computes the same.  The surprise is that a program does *not* communicate.  A part for each device would
be an eighth of the time and one number on the wire, but the compiler does not look for work to share out.

Instead: pin the gradient split.  Every device has all of it, so the pin sends nothing.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))


def lowered(function):
    gradient = jax.ShapeDtypeStruct((8192, 8192), "bfloat16", sharding=NamedSharding(MESH, P()))
    return jax.jit(function).trace(gradient).lower(lowering_platforms=("tpu",))


def norm(gradient):
    return jnp.sqrt(jnp.sum(gradient.astype("float32") ** 2))


def parts(gradient):
    return jax.lax.with_sharding_constraint(gradient, NamedSharding(MESH, P("data")))


def surprising():
    return lowered(norm)


def instead():
    return lowered(lambda gradient: norm(parts(gradient)))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
