"""Fully sharded weights are gathered for each microbatch anew (AI-Hypercomputer/maxtext#1908).

Symptom: FSDP all-gather in every microbatch; gradient accumulation; vocabulary tiling; all-gather inside a while loop

Asked: the gradient of a loss over four microbatches, in a scan; two layers whose weights are split over `fsdp`, and the
activations pinned to their batch.

Why: the matmul that needs a weight whole is in the loop, so its gather is, too: forward, for one of the two once more
backward, and the gradient of each microbatch is scattered at once.  The weights are the same in all four, but the
compiler does not move a gather out of a loop: the whole weight would have to stay in memory.  Logits in tiles of tokens
are the same again, with the vocabulary's table (`surprising_tiles`, AI-Hypercomputer/maxtext#4236).

Instead: pin the weights whole before the loop, if there is room for them.  Then the gradients are summed in the loop,
and scattered once.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"fsdp": 8}
MESH = AbstractMesh((8,), ("fsdp",))


def split(shape, *dims):
    return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(MESH, P(*dims)))


def pinned(tensor, *dims):
    return jax.lax.with_sharding_constraint(tensor, NamedSharding(MESH, P(*dims)))


def summed(loss, weights, batches):
    return jax.lax.scan(lambda total, batch: (total + loss(weights, batch), None), 0.0, batches)[0]


def loss(weights, batch):
    up, down = weights
    hidden = jnp.tanh(pinned(batch @ up, "fsdp"))
    return jnp.sum(pinned(hidden @ down, "fsdp").astype("float32") ** 2)


def training(prepare):
    weights = [split((1024, 4096), "fsdp"), split((4096, 1024), "fsdp")]
    gradients = jax.grad(lambda weights, batches: summed(loss, [prepare(weight) for weight in weights], batches))
    made = jax.jit(gradients, out_shardings=[weight.sharding for weight in weights])
    return made.trace(weights, split((4, 512, 1024), None, "fsdp")).lower(lowering_platforms=("tpu",))


def tile_loss(table, tokens):
    logits = pinned((tokens @ table.T).astype("float32"), "fsdp")
    return jnp.sum(jax.nn.logsumexp(logits, axis=1))


def tiles(prepare):
    table, tokens = split((32768, 1024), None, "fsdp"), split((8, 512, 1024), None, "fsdp")
    made = jax.jit(lambda table, tokens: summed(tile_loss, prepare(table), tokens))
    return made.trace(table, tokens).lower(lowering_platforms=("tpu",))


def surprising():
    return training(lambda weight: weight)


def surprising_tiles():
    return tiles(lambda table: table)


def instead():
    return training(pinned)


def instead_tiles():
    return tiles(pinned)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_tiles, instead, instead_tiles):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
