"""A loop over layers copies the caches of all of them in every layer, where a token is written by its index.

Asked: decode with the layers in a `scan`, which carries one cache of all layers, `[layers, batch, positions, heads ·
head_dim]`.  In each layer the token is written by its index (`.at[].set`, `index_copy` of PyTorch), and what was
written is read.  Heads are split over `model`: nothing needs to be sent, and nothing is.

Why: the surprise is in memory, not on the wire.  The write wants the cache in one order in memory, the read in another,
since it takes the last dim apart into heads; the loop carries one order.  So the body of the loop has two operations
`copy` of the whole cache, from one order to the other and back, in every layer.  In a step of Llama 3.1 8B they can
take most of the time ([study](../study/study.md#what-the-cache-costs)).

Instead: read the layer before it is written, the token put among what is read by a mask, and write the token's slice
(`instead`); or keep the heads a dim of their own (`instead_heads`).  With one head on each device there is nothing to
take apart (`instead_one_head`); unrolled, a layer's cache is an array of its own (`instead_unrolled`), as in Hugging
Face's code, which therefore does not meet this.  Where positions are split the slice is not enough: mask the write,
too.  Each border by itself: the gallery, from [cache-loop-index](../gallery/cache-loop-index.html) on.

Symptom: decode is slow and nothing is sent; `copy` of the whole cache in every layer; cache update takes most of a step
"""

import jax
import jax.numpy as jnp
from jax.lax import dynamic_update_slice
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"model": 8}
MESH = AbstractMesh((8,), ("model",))
LAYERS, BATCH, POSITIONS, HEAD_DIM = 4, 8, 1024, 128


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def attend(queries, cache):
    """queries: [batch, heads, group, head_dim], cache: [batch, positions, heads, head_dim]."""
    shares = jax.nn.softmax(jnp.einsum("bkgh,bskh->bkgs", queries, cache), axis=-1)
    return jnp.einsum("bkgs,bskh->bkgh", shares, cache)


def by_index(x, cache, layer, at):
    new = x[:, :, 0].reshape(BATCH, -1)
    cache = cache.at[layer].set(cache[layer].at[:, at].set(new))
    return attend(x, cache[layer].reshape(BATCH, POSITIONS, -1, HEAD_DIM)), cache


def by_mask(x, cache, layer, at):
    new = x[:, :, 0].reshape(BATCH, 1, -1)
    read = jnp.where((jnp.arange(POSITIONS) == at)[:, None], new, cache[layer])
    cache = dynamic_update_slice(cache, new[None], (layer, 0, at, 0))
    return attend(x, read.reshape(BATCH, POSITIONS, -1, HEAD_DIM)), cache


def by_heads(x, cache, layer, at):
    cache = cache.at[layer].set(cache[layer].at[:, at].set(x[:, :, 0]))
    return attend(x, cache[layer]), cache


def lowered(use, *, heads=16, apart=False, unrolled=False):
    def step(x, cache, at):
        if unrolled:
            for layer in range(LAYERS):
                x, cache = use(x, cache, layer, at)
            return x, cache
        return jax.lax.scan(lambda carry, layer: (use(*carry, layer, at), None), (x, cache), jnp.arange(LAYERS))[0]

    width, dims = ((heads, HEAD_DIM), ("model", None)) if apart else ((heads * HEAD_DIM,), ("model",))
    x = split((BATCH, heads, 2, HEAD_DIM), None, "model", None, None)
    cache = split((LAYERS, BATCH, POSITIONS, *width), None, None, None, *dims)
    made = jax.jit(step, donate_argnums=1, out_shardings=(x.sharding, cache.sharding))
    return made.trace(x, cache, split((), dtype="int32")).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(by_index)


def instead():
    return lowered(by_mask)


def instead_heads():
    return lowered(by_heads, apart=True)


def instead_one_head():
    return lowered(by_index, heads=8)


def instead_unrolled():
    return lowered(by_index, unrolled=True)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead, instead_heads, instead_one_head, instead_unrolled):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
