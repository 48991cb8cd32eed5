"""A fused weight is cut in two before it is gathered, and glued together behind it (AI-Hypercomputer/maxtext#4459).

Symptom: two all-gathers for one fused MoE weight; slice and concatenate around FSDP all-gather; wi_0 and wi_1

Asked: experts whose first layer is one weight, `[experts, features, gate | up]`, its features split over `fsdp`; a
`shard_map` that takes gate and up, gathers them, and multiplies by both at once.

Why: what is written in `shard_map` is what is emitted.  Two gathers are two waits, for the same bytes; and the weight
is cut before them, and glued behind.

Instead: hand in the weight as it is, and cut the result of the matmul.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"fsdp": 8}
MESH = AbstractMesh((8,), ("fsdp",))
SPLIT = P(None, "fsdp")


def lowered(function):
    tokens, weight = (
        jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(MESH, SPLIT))
        for shape in ((8, 512, 1024), (8, 1024, 2048))
    )
    return jax.jit(function).trace(tokens, weight).lower(lowering_platforms=("tpu",))


def gated(tokens, *weights):
    gathered = [jax.lax.all_gather(weight, "fsdp", axis=1, tiled=True) for weight in weights]
    gate, up = jnp.split(jnp.einsum("etd,edf->etf", tokens, jnp.concatenate(gathered, 2)), 2, axis=2)
    return jax.nn.silu(gate) * up


def layer(tokens, *weights):
    specs = {"in_specs": (SPLIT,) * (1 + len(weights)), "out_specs": SPLIT}
    return jax.shard_map(gated, mesh=MESH, **specs)(tokens, *weights)


def surprising():
    return lowered(lambda tokens, weight: layer(tokens, *jnp.split(weight, 2, axis=2)))


def instead():
    return lowered(layer)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
