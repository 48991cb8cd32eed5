"""Keys and values of every position so far: cache in, cache out, in place."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from meshes.case import Case
from torchxla_impl.layout import Layout

CACHE_DIMS = "_ stages batch _ kv_heads"
"""Entries (layer · slots + slot), stages, batch of a microbatch, positions, heads · head_dim."""

Piece = Float[Tensor, "stages batch seq kv_heads head_dim"]
Keys = Float[Tensor, "stages batch length kv_heads head_dim"]


class Cache(NamedTuple):
    """Stage s keeps microbatch i in slot (i + s) mod slots, so that one slot number serves all stages in a tick."""

    k: Float[Tensor, "entries stages batch length width"]
    v: Float[Tensor, "entries stages batch length width"]


def cache_shape(case: Case) -> tuple[int, ...]:
    entries = case.model.layers // case.mesh.pp * case.microbatches
    width = case.model.kv_heads * case.model.head_dim
    return (entries, case.mesh.pp, case.batch // case.microbatches, case.cache_length, width)


def write(
    cache: Cache,
    k: Piece,
    v: Piece,
    *,
    entry: Int[Tensor, ""],
    position: Int[Tensor, ""],
    active: Bool[Tensor, "stages"],
    layout: Layout,
) -> Cache:
    """The cache with `k` and `v` from `position` on; stages that are not active keep theirs.  No collective."""
    return Cache(*(_write(old, new, entry, position, active, layout) for old, new in zip(cache, (k, v), strict=True)))


def _write(
    old: Tensor, new: Tensor, entry: Tensor, position: Tensor, active: Tensor, layout: Layout
) -> Float[Tensor, "entries stages batch length width"]:
    piece, at, where = new.flatten(3), entry.reshape(1).long(), position.reshape(1).long()
    length = old.index_select(0, at).squeeze(0)
    # A prompt begins at position 0, and is written as a slice: rows at a traced position become a loop over them.
    prompt = layout.case.phase == "prefill"
    if piece.shape[0] > 1:
        kept = length[:, :, : piece.shape[2]] if prompt else length.index_select(2, where)
        piece = torch.where(active[:, None, None, None], piece, kept)
    length = length.slice_scatter(piece, 2, 0, piece.shape[2]) if prompt else length.index_copy(2, where, piece)
    return layout.place(old.index_copy(0, at, layout.place(length[None], CACHE_DIMS)), CACHE_DIMS)


def read(
    cache: Cache, k: Piece, v: Piece, *, entry: Int[Tensor, ""], position: Int[Tensor, ""], layout: Layout
) -> tuple[Keys, Keys]:
    """The keys and values of one layer and microbatch: the cache's, with `k` and `v` at `position`.  No collective.

    Read before they are written: reading a cache just written has the TPU's compiler copy all of it in every layer.
    """
    keys, values = (_read(old, new, entry, position, layout) for old, new in zip(cache, (k, v), strict=True))
    return keys, values


def _read(old: Tensor, new: Tensor, entry: Tensor, position: Tensor, layout: Layout) -> Keys:
    length = old.index_select(0, entry.reshape(1).long()).squeeze(0)
    length = length.index_copy(2, position.reshape(1).long(), new.flatten(3))
    return layout.place(length.unflatten(-1, new.shape[3:]), "stages batch _ kv_heads head_dim")
