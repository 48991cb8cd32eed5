"""The last stage of a pipeline is picked by its index, and travels twice to everybody (openxla/xla#15048).

Asked: the loss of what the last of four stages has made: `loss(x[-1])`, where each device has one stage of `x`.

Why: if all devices want the slice of one device, the partitioner cuts in two steps: it moves the slice to the first
stage, and then sends it to all by a sum to which the others give zeros.  Four stages then hold a copy of the last one's
activations, and compute the loss of it, each of them the same.

Instead: every stage computes the loss of its own, which takes no longer than waiting for it; then all but the last are
masked, and one number is summed.

Symptom: the last pipeline stage's output sent to all devices; indexing a split dim communicates; all-reduce for a slice
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"stage": 4, "data": 2}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims):
    return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(MESH, P(*dims)))


def lowered(function):
    stages, weight = split((4, 64, 4096), "stage", "data"), split((4096, 1024))
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P()))
    return made.trace(stages, weight).lower(lowering_platforms=("tpu",))


def losses(x, weight):
    return jnp.tanh(x @ weight).astype("float32")


def surprising():
    return lowered(lambda x, weight: jnp.sum(losses(x[-1], weight)))


def instead():
    is_last = jnp.arange(4)[:, None, None] == 3
    return lowered(lambda x, weight: jnp.sum(jnp.where(is_last, losses(x, weight), 0)))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
