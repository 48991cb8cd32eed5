"""Keys and values of every position so far: cache in, cache out, in place."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from meshes.case import Case
from meshes.twins.caches import cache_names, choose_cache_use
from torchxla_impl.decoder.update_slice import update_slice
from torchxla_impl.sharding.layout import Layout

CACHE_DIMS = "_ stages batch positions kv_heads"
"""Entries, stages, batch of a microbatch, positions, heads · head_dim.

An entry is layer · slots + slot; unrolled layers have a cache each, in which an entry is a slot.
"""

KV = Float[Tensor, "stages batch seq kv_heads head_dim"]
Keys = Float[Tensor, "stages batch length kv_heads head_dim"]
Entries = Float[Tensor, "entries stages batch length width"]
Layer = Float[Tensor, "stages batch length width"]
Tokens = Float[Tensor, "stages batch seq width"]


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
    cache: Cache, k: KV, v: KV, *, entry: Int[Tensor, ""], position: Int[Tensor, ""], layout: Layout
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
        _heads(_put(_layer(old, entry), new.flatten(3), position, layout, how.read), k, layout)
        for old, new in zip(cache, (k, v), strict=True)
    )
    return keys, values, written()


def _heads(layer: Layer, like: KV, layout: Layout) -> Keys:
    return layout.place(layer.unflatten(-1, like.shape[3:]), "stages batch positions kv_heads head_dim")


def _layer(cache: Entries, entry: Int[Tensor, ""]) -> Layer:
    return cache.index_select(0, entry.reshape(1).long()).squeeze(0)


def _put(layer: Layer, token: Tokens, position: Int[Tensor, ""], layout: Layout, how: str) -> Layer:
    """A layer's cache with a token at its place."""
    place = layout.cache_index(position)
    if how == "select":
        places = torch.arange(layer.shape[2], device=layer.device)
        return torch.where((places == place)[:, None], token, layer)
    if how == "index":
        return layer.index_copy(2, place.reshape(1).long(), token)
    return update_slice(layer, token, (0, 0, place, 0))


def _write(
    cache: Entries, new: KV, entry: Int[Tensor, ""], position: Int[Tensor, ""], layout: Layout, how: str
) -> Entries:
    if layout.case.phase == "decode" and how == "slice":
        piece = layout.place(new.flatten(3)[None], "_ stages batch _ kv_heads")
        return layout.place(update_slice(cache, piece, (entry, 0, 0, layout.cache_index(position), 0)), CACHE_DIMS)
    if layout.case.phase == "prefill":
        layer = _put_prompt(_layer(cache, entry), new.flatten(3), layout)
    else:
        layer = _put(_layer(cache, entry), new.flatten(3), position, layout, how)
    at = entry.reshape(1).long()
    return layout.place(cache.index_copy(0, at, layout.place(layer[None], CACHE_DIMS)), CACHE_DIMS)


def _put_prompt(layer: Layer, prompt: Tokens, layout: Layout) -> Layer:
    """Each part of a prompt at the head of its own part of the cache, so that no token is moved.

    As slices: rows at a traced position become a loop over them.
    """
    # [stages batch parts positions/parts width]
    layer, prompt = (each.unflatten(2, (layout.num_parts("positions"), -1)) for each in (layer, prompt))
    return layer.slice_scatter(prompt, 3, 0, prompt.shape[3]).flatten(2, 3)
