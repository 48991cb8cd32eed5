"""What a step takes and gives, by name: the table behind placeholders, loading, and `about.json`."""

from dataclasses import dataclass

import torch

from meshes.twins.caches import cache_names
from meshes.weights import weights
from torchxla_impl.decoder.cache import CACHE_DIMS, cache_shape
from torchxla_impl.sharding.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One tensor of a step, before there is one."""

    name: str
    role: str
    """`weight`, `cache` or `input`."""
    dims: str
    shape: tuple[int, ...]
    dtype: torch.dtype


def arguments(layout: Layout) -> tuple[Argument, ...]:
    """Weights, cache, tokens, and in `decode` the position."""
    case, dtype = layout.case, layout.dtype
    rows = [(each.name, "weight", each.dims, each.shape, dtype) for each in weights(case)]
    rows += [(name, "cache", CACHE_DIMS, cache_shape(case), dtype) for pair in cache_names(case) for name in pair]
    if case.phase == "prefill":
        rows += [("tokens", "input", "batch positions", (case.batch, case.seq), torch.int32)]
    else:
        rows += [("tokens", "input", "batch _", (case.batch, 1), torch.int32)]
        rows += [("position", "input", "", (), torch.int32)]
    return tuple(
        Argument(name=name, role=role, dims=dims, shape=shape, dtype=kind) for name, role, dims, shape, kind in rows
    )
