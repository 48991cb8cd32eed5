"""Keys and values of every position so far: cache in, cache out, in place."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jax_impl.sharding.layout import Layout
from meshes.case import Case
from meshes.twins.caches import cache_names, choose_cache_use

CACHE_DIMS = "_ stages batch positions kv_heads"
"""Entries, stages, batch of a microbatch, positions, heads · head_dim.

An entry is layer · slots + slot; unrolled layers have a cache each, in which an entry is a slot.
"""

KV = Float[Array, "stages batch seq kv_heads head_dim"]
Keys = Float[Array, "stages batch length kv_heads head_dim"]
Entries = Float[Array, "entries stages batch length width"]
Layer = Float[Array, "stages batch length width"]
Tokens = Float[Array, "stages batch seq width"]


class Cache(NamedTuple):
    """Stage s keeps microbatch i in slot (i + s) mod slots, so that one slot number serves all stages in a tick."""

    k: Entries
    v: Entries


Caches = Cache | tuple[Cache, ...]
"""Of a stage: one for all its layers in a scan, one of each where they are unrolled."""


def make_caches(case: Case, make: Callable[[str], Any]) -> Caches:
    """The caches of a step, each tensor made by its name."""
    caches = tuple(Cache(make(k), make(v)) for k, v in cache_names(case))
    return caches[0] if case.loop == "scan" else caches


def cache_shape(case: Case) -> tuple[int, ...]:
    layers = case.model.layers // case.mesh.pp if case.loop == "scan" else 1
    entries = layers * case.microbatches
    width = case.kv_heads * case.model.head_dim
    return (entries, case.mesh.pp, case.batch // case.microbatches, case.cache_length, width)


def update(
    cache: Cache, k: KV, v: KV, *, entry: Int[Array, ""], position: Int[Array, ""], layout: Layout
) -> tuple[Keys, Keys, Cache]:
    """What one layer and microbatch attends to, keys and values, and the cache with `k` and `v` from `position` on.

    In prefill a prompt attends to itself, in decode a token to the cache.  No collective.
    """
    how = choose_cache_use(layout.case)

    def written() -> Cache:
        return Cache(
            *(_write(old, new, entry, position, layout, how.write) for old, new in zip(cache, (k, v), strict=True))
        )

    if layout.case.phase == "prefill":
        return k, v, written()
    if how.read == "written":
        after = written()
        keys, values = (_heads(_layer(each, entry), k, layout) for each in after)
        return keys, values, after
    keys, values = (
        _heads(_put(_layer(old, entry), _merged(new), position, layout, how.read), k, layout)
        for old, new in zip(cache, (k, v), strict=True)
    )
    return keys, values, written()


def _merged(x: KV) -> Tokens:
    return x.reshape(*x.shape[:3], -1)


def _heads(layer: Layer, like: KV, layout: Layout) -> Keys:
    keys = layer.reshape(*layer.shape[:3], *like.shape[3:])
    return layout.place(keys, "stages batch positions kv_heads head_dim")


def _layer(cache: Entries, entry: Int[Array, ""]) -> Layer:
    return jax.lax.dynamic_index_in_dim(cache, entry, keepdims=False)


def _put(layer: Layer, token: Tokens, position: Int[Array, ""], layout: Layout, how: str) -> Layer:
    """A layer's cache with a token at its place."""
    place = layout.cache_index(position)
    if how == "select":
        return jnp.where((jnp.arange(layer.shape[2]) == place)[:, None], token, layer)
    if how == "index":
        return layer.at[:, :, place].set(token[:, :, 0])
    return jax.lax.dynamic_update_slice(layer, token, (0, 0, place, 0))


def _write(
    cache: Entries, new: KV, entry: Int[Array, ""], position: Int[Array, ""], layout: Layout, how: str
) -> Entries:
    piece, dims = _merged(new)[None], CACHE_DIMS
    at: tuple[Int[Array, ""] | int, ...] = (entry, 0, 0, 0, 0)
    if layout.case.phase == "prefill":
        piece = _parts(piece, layout)
    elif how == "slice":
        at, dims = (entry, 0, 0, layout.cache_index(position), 0), "_ stages batch _ kv_heads"
    else:
        piece = _put(_layer(cache, entry), piece[0], position, layout, how)[None]
    return layout.place(jax.lax.dynamic_update_slice(cache, layout.place(piece, dims), at), CACHE_DIMS)


def _parts(
    piece: Float[Array, "entry stages batch seq width"], layout: Layout
) -> Float[Array, "entry stages batch places width"]:
    """Each part of a prompt at the head of its own part of the cache, so that no token is moved."""
    ranks, (*outer, seq, width) = layout.num_parts("positions"), piece.shape
    if ranks == 1:
        return piece
    spare = layout.case.cache_length // ranks - seq // ranks
    # [entry stages batch ranks positions/ranks width]
    padded = jnp.pad(piece.reshape(*outer, ranks, seq // ranks, width), [(0, 0)] * 4 + [(0, spare), (0, 0)])
    return padded.reshape(*outer, -1, width)
