"""FSDP in JAX: gathered weights stay whole until the backward pass (jax-ml/jax#25010).

Asked: gradients of three layers whose weights are split over `fsdp`, as the batch is; each layer makes its weight whole
before it multiplies.  How does one tell `jax.checkpoint` to gather again in the backward pass?

Why: the backward pass multiplies by the same weights, and a gathered weight is a value like any other: what the forward
pass has made is kept for it.  So the table has one gather a weight, all *forward*, at the line of the pin; and all
layers' weights are whole at the same time, which FSDP was to avoid.  A policy that names what it gathers does not
change it (`surprising_named`): `save_anything_except_these_names` may save the pinned weight *before* it gets its name.

Instead: the pin inside of `jax.checkpoint`, and a policy that saves products alone (`dots_saveable`): no matmul is
repeated, and the weights of the second and third layer are gathered again (the first has no use for its own: nobody
asks for the gradient of the batch).  Without a policy the products are made again, too (`instead_all`): then all three
are gathered for the recomputation, and the third not at all in the forward pass, since only gradients are asked for.
These are more bytes; that is the trade.

Symptom: FSDP runs out of memory in the forward pass; gathered weights kept for the backward pass; `jax.checkpoint` does
not repeat the all-gather; weights gathered twice or three times a step
"""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.lax import with_sharding_constraint
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"fsdp": 8}
MESH = AbstractMesh((8,), ("fsdp",))
POLICIES = jax.checkpoint_policies
WHOLE, SPLIT = NamedSharding(MESH, P()), NamedSharding(MESH, P("fsdp"))


def layer(x, weight):
    return jnp.tanh(x @ checkpoint_name(with_sharding_constraint(weight, WHOLE), "whole"))


def gradients(layer):
    def loss(weights, x):
        for weight in weights:
            x = layer(x, weight)
        return jnp.sum(x, dtype="float32")

    weights = (jax.ShapeDtypeStruct((1024, 1024), "bfloat16", sharding=SPLIT),) * 3
    batch = jax.ShapeDtypeStruct((8192, 1024), "bfloat16", sharding=SPLIT)
    return jax.jit(jax.grad(loss), out_shardings=SPLIT).trace(weights, batch).lower(lowering_platforms=("tpu",))


def surprising():
    return gradients(layer)


def surprising_named():
    return gradients(jax.checkpoint(layer, policy=POLICIES.save_anything_except_these_names("whole")))


def instead():
    return gradients(jax.checkpoint(layer, policy=POLICIES.dots_saveable))


def instead_all():
    return gradients(jax.checkpoint(layer))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_named, instead, instead_all):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
