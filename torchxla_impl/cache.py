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
    piece = new.flatten(3)
    at = entry.reshape(1)
    length = old.index_select(0, at).squeeze(0)
    stages, _, seq, _ = piece.shape
    if seq > 1:
        # A prompt starts at position 0: rows at a traced position would become a loop over them.
        put = lambda piece: length.slice_scatter(piece, 2, 0, seq)
        kept = length[:, :, :seq]
    else:
        put = lambda piece: length.index_copy(2, position.reshape(1).long(), piece)
        kept = length.index_select(2, position.reshape(1))
    if stages > 1:
        piece = torch.where(active[:, None, None, None], piece, kept)
    changed = layout.place(put(piece)[None], CACHE_DIMS)
    return layout.place(old.index_copy(0, at.long(), changed), CACHE_DIMS)


def read(cache: Cache, *, entry: Int[Tensor, ""], layout: Layout) -> tuple[Piece, Piece]:
    """The keys and values of one layer and microbatch, all positions.  No collective."""
    k, v = (_read(kept, entry, layout) for kept in cache)
    return k, v


def _read(kept: Tensor, entry: Tensor, layout: Layout) -> Piece:
    model = layout.case.model
    piece = kept.index_select(0, entry.reshape(1)).squeeze(0)
    return layout.place(
        piece.unflatten(-1, (model.kv_heads, model.head_dim)), "stages batch _ kv_heads head_dim"
    )
