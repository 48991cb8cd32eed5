"""Three projections as one matmul, and the cut into three crosses the devices (sgl-project/sglang-jax#1096).

Symptom: fused QKV; MergedColumnParallelLinear; collective-permute or all-to-all after split; gate_up projection

Asked: queries, keys and values from one matmul with `[q | k | v]`, whose columns are split over `model`; then each of
the three split over `model` by its heads.

Why: the first of four devices has columns 0 to 1,535 of 6,144: three quarters of the queries, and no keys.  But it
wants a quarter of the queries, of the keys and of the values.  So all three travel, in seven messages.

Instead: give the three a dim of their own, `[features, 3, columns]`, and split the columns.  Each device then has its
quarter of each, still by one matmul.  (A checkpoint's `[q | k | v]` is reordered once, when it is loaded.)
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(project, *dims):
    x, weight = split((64, 1024), "data"), split((1024, *dims), *[None] * len(dims), "model")
    made = jax.jit(project, out_shardings=NamedSharding(MESH, P("data", "model")))
    return made.trace(x, weight).lower(lowering_platforms=("tpu",))


def heads(part):
    return part.reshape(64, 16, 128)


def cut(x, weight):
    return [heads(part) for part in jnp.split(x @ weight, 3, axis=1)]


def taken(x, weight):
    parts = jnp.einsum("td,dpf->tpf", x, weight)
    return [heads(parts[:, part]) for part in range(3)]


def surprising():
    return lowered(cut, 3 * 2048)


def instead():
    return lowered(taken, 3, 2048)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
