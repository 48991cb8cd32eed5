"""Keys and values of every position so far: cache in, cache out, in place."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jax_impl.sharding.layout import Layout
from meshes.case import Case

CACHE_DIMS = "_ stages batch positions kv_heads"
"""Entries (layer · slots + slot), stages, batch of a microbatch, positions, heads · head_dim."""

KV = Float[Array, "stages batch seq kv_heads head_dim"]
Keys = Float[Array, "stages batch length kv_heads head_dim"]


class Cache(NamedTuple):
    """Stage s keeps microbatch i in slot (i + s) mod slots, so that one slot number serves all stages in a tick."""

    k: Float[Array, "entries stages batch length width"]
    v: Float[Array, "entries stages batch length width"]


def cache_shape(case: Case) -> tuple[int, ...]:
    entries = case.model.layers // case.mesh.pp * case.microbatches
    width = case.kv_heads * case.model.head_dim
    return (entries, case.mesh.pp, case.batch // case.microbatches, case.cache_length, width)


def write(
    cache: Cache,
    k: KV,
    v: KV,
    *,
    entry: Int[Array, ""],
    position: Int[Array, ""],
    layout: Layout,
) -> Cache:
    """The cache with `k` and `v` from `position` on.  No collective."""
    return Cache(*(_write(old, new, entry, position, layout) for old, new in zip(cache, (k, v), strict=True)))


def _write(
    old: Array, new: Array, entry: Array, position: Array, layout: Layout
) -> Float[Array, "entries stages batch length width"]:
    stages, batch, seq, heads, head_dim = new.shape
    prefill = layout.case.phase == "prefill"
    piece = new.reshape(stages, batch, seq, heads * head_dim)
    piece = (_parts(piece, layout) if prefill else piece)[None]
    at = (entry, 0, 0, layout.cache_index(position), 0)
    piece = layout.place(piece, CACHE_DIMS if prefill else "_ stages batch _ kv_heads")
    return layout.place(jax.lax.dynamic_update_slice(old, piece, at), CACHE_DIMS)


def _parts(piece: Float[Array, "stages batch seq width"], layout: Layout) -> Float[Array, "stages batch places width"]:
    """Each part of a prompt at the head of its own part of the cache, so that no token is moved."""
    ranks, (*outer, seq, width) = layout.num_parts("positions"), piece.shape
    if ranks == 1:
        return piece
    spare = layout.case.cache_length // ranks - seq // ranks
    # [stages batch ranks positions/ranks width]
    padded = jnp.pad(piece.reshape(*outer, ranks, seq // ranks, width), [(0, 0)] * 3 + [(0, spare), (0, 0)])
    return padded.reshape(*outer, -1, width)


def read(
    cache: Cache, k: KV, v: KV, *, entry: Int[Array, ""], position: Int[Array, ""], layout: Layout
) -> tuple[Keys, Keys]:
    """The keys and values of one layer and microbatch: the cache's, with `k` and `v` at `position`.  No collective.

    Read before they are written: reading a cache just written has the TPU's compiler copy all of it in every layer.
    """
    keys, values = (_read(old, new, entry, position, layout) for old, new in zip(cache, (k, v), strict=True))
    return keys, values


def _read(old: Array, new: Array, entry: Array, position: Array, layout: Layout) -> Keys:
    stages, batch, _, heads, head_dim = new.shape
    length = jax.lax.dynamic_index_in_dim(old, entry, keepdims=False)
    at = (0, 0, layout.cache_index(position), 0)
    length = jax.lax.dynamic_update_slice(length, new.reshape(stages, batch, -1, heads * head_dim), at)
    return layout.place(length.reshape(stages, batch, -1, heads, head_dim), "stages batch positions kv_heads head_dim")
