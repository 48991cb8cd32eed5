"""Keys and values of every position so far: cache in, cache out, in place."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from meshes.case import Case
from torchxla_impl.sharding.layout import Layout

CACHE_DIMS = "_ stages batch positions kv_heads"
"""Entries (layer · slots + slot), stages, batch of a microbatch, positions, heads · head_dim."""

KV = Float[Tensor, "stages batch seq kv_heads head_dim"]
Keys = Float[Tensor, "stages batch length kv_heads head_dim"]


class Cache(NamedTuple):
    """Stage s keeps microbatch i in slot (i + s) mod slots, so that one slot number serves all stages in a tick."""

    k: Float[Tensor, "entries stages batch length width"]
    v: Float[Tensor, "entries stages batch length width"]


def cache_shape(case: Case) -> tuple[int, ...]:
    entries = case.model.layers // case.mesh.pp * case.microbatches
    width = case.kv_heads * case.model.head_dim
    return (entries, case.mesh.pp, case.batch // case.microbatches, case.cache_length, width)


def write(
    cache: Cache,
    k: KV,
    v: KV,
    *,
    entry: Int[Tensor, ""],
    position: Int[Tensor, ""],
    layout: Layout,
) -> Cache:
    """The cache with `k` and `v` from `position` on.  No collective."""
    return Cache(*(_write(old, new, entry, position, layout) for old, new in zip(cache, (k, v), strict=True)))


def _write(
    old: Tensor, new: Tensor, entry: Tensor, position: Tensor, layout: Layout
) -> Float[Tensor, "entries stages batch length width"]:
    at = entry.reshape(1).long()
    length = old.index_select(0, at).squeeze(0)
    if layout.case.phase == "prefill":
        length = _put_prompt(length, new.flatten(3), layout)
    else:
        # Not as `read` does: XLA would see one result in both, and copy the cache that it reads after writing it.
        length = _selected(length, new.flatten(3), position, layout)
    return layout.place(old.index_copy(0, at, layout.place(length[None], CACHE_DIMS)), CACHE_DIMS)


def _put_prompt(length: Tensor, prompt: Tensor, layout: Layout) -> Float[Tensor, "stages batch length width"]:
    """Each part of a prompt at the head of its own part of the cache, so that no token is moved.

    As slices: rows at a traced position become a loop over them.
    """
    # [stages batch parts positions/parts width]
    length, prompt = (each.unflatten(2, (layout.num_parts("positions"), -1)) for each in (length, prompt))
    return length.slice_scatter(prompt, 3, 0, prompt.shape[3]).flatten(2, 3)


def _selected(
    length: Tensor, token: Tensor, position: Tensor, layout: Layout
) -> Float[Tensor, "stages batch length width"]:
    """The token at its place, and what was there everywhere else."""
    places = torch.arange(length.shape[2], device=length.device)
    return torch.where((places == layout.cache_index(position))[:, None], token, length)


def read(
    cache: Cache, k: KV, v: KV, *, entry: Int[Tensor, ""], position: Int[Tensor, ""], layout: Layout
) -> tuple[Keys, Keys]:
    """The keys and values of one layer and microbatch: the cache's, with `k` and `v` at `position`.  No collective.

    Read before they are written: reading a cache just written has the TPU's compiler copy all of it in every layer.
    """
    keys, values = (_read(old, new, entry, position, layout) for old, new in zip(cache, (k, v), strict=True))
    return keys, values


def _read(old: Tensor, new: Tensor, entry: Tensor, position: Tensor, layout: Layout) -> Keys:
    length = old.index_select(0, entry.reshape(1).long()).squeeze(0)
    if layout.num_parts("positions") == 1:
        length = length.index_copy(2, position.reshape(1).long(), new.flatten(3))
    else:
        # XLA reads what `index_copy` would replace, in case that the place is not there: of split positions it gathers
        # all.
        length = _selected(length, new.flatten(3), position, layout)
    return layout.place(length.unflatten(-1, new.shape[3:]), "stages batch positions kv_heads head_dim")
