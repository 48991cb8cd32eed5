"""Each sequence writes its cache at its own place: one after the other, or not where it lies (apple/axlearn#972).

Asked: 32 new tokens for each of 16 sequences, written to the cache from a position on that differs from sequence to
sequence.  Sequences are split over `data`, and positions over `model` (`surprising`) or heads (`surprising_loop`).  The
shortest way to write it is `vmap` of `dynamic_update_slice`.

Why: JAX makes a scatter of it, and the compiler turns a scatter of slices into a loop over the sequences, one slice
after the other (jax-ml/jax#21367).  With split heads nothing is sent, and no table shows it; eight iterations on each
device are in the HLO as a `while`.  With split positions a slice may cross the border between two devices, and the
whole cache is gathered over `model` for the write.  With one new token there is no border to cross: a test of decode
does not show it.

Instead: an index for each position (`.at[rows, positions].set`), of which every device takes those that it has.  That
is still a scatter, which a TPU is slow at.  Or no scatter at all, as in the report: put each new token at its place by
a product with zeros and ones, and choose by a mask (`instead_mask`, `instead_mask_heads`); it reads and writes the
whole cache, in one pass.  The authors had an index for every number, and their prefill went from 2.2 s to 71 ms.  No
table of collectives tells that: it takes a profile.

Symptom: cache update is slow and nothing is sent; unexpected all-gather of the cache; `vmap` of `dynamic_update_slice`
is slow; a `while` loop that the program does not have; scatter is slow
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(write, *, by_heads=False):
    heads, positions = ("model", None) if by_heads else (None, "model")
    cache, new = split((16, 1024, 8, 128), "data", positions, heads), split((16, 32, 8, 128), "data", None, heads)
    made = jax.jit(write, donate_argnums=0, out_shardings=cache.sharding)
    return made.trace(cache, new, split((16,), "data", dtype="int32")).lower(lowering_platforms=("tpu",))


def by_slice(cache, new, start):
    return jax.vmap(lambda cache, new, at: jax.lax.dynamic_update_slice(cache, new, (at, 0, 0)))(cache, new, start)


def by_index(cache, new, start):
    return cache.at[jnp.arange(16)[:, None], start[:, None] + jnp.arange(32)].set(new)


def by_mask(cache, new, start):
    is_at = start[:, None, None] + jnp.arange(32) == jnp.arange(1024)[:, None]  # [sequences, positions, new tokens]
    placed = jnp.einsum("bst,btnh->bsnh", is_at.astype(new.dtype), new)
    return jnp.where(is_at.any(-1)[..., None, None], placed, cache)


def surprising():
    return lowered(by_slice)


def surprising_loop():
    return lowered(by_slice, by_heads=True)


def instead():
    return lowered(by_index)


def instead_mask():
    return lowered(by_mask)


def instead_mask_heads():
    return lowered(by_mask, by_heads=True)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_loop, instead, instead_mask, instead_mask_heads):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
