"""A batch is cut into microbatches, and each of them is gathered (openxla/xla#13306).

Asked: a batch of 64, split over eight devices, reshaped to four microbatches of 16; a loop over them.

Why: the eight parts of the batch become four microbatches of two parts each.  A microbatch lies on two devices, the
other six have nothing of it; and the loop takes one at a time, at a place of a split dim that is known only when it
runs.  So every iteration gathers the microbatch over groups of four devices that hold different ones.

Instead: make the microbatch the inner dim, `[16, 4, …]`, and swap the two.  Every device has an equal part of each.

Symptom: all-gather inside a loop; microbatches gathered one by one; reshape of a split batch communicates
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *arguments, out=()):
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P(*out)))
    return made.trace(*arguments).lower(lowering_platforms=("tpu",))


def losses(batch, weight):
    return jax.lax.map(lambda one: jnp.tanh(one @ weight).sum(dtype="float32"), batch)


PARTS = split((64, 2048), "data"), split((2048, 2048))


def surprising():
    return lowered(lambda batch, weight: losses(batch.reshape(4, 16, 2048), weight), *PARTS)


def instead():
    return lowered(lambda batch, weight: losses(batch.reshape(16, 4, 2048).swapaxes(0, 1), weight), *PARTS)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
