"""XLA's dynamic_update_slice, for which PyTorch has no operation."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch_xla.core import xla_op_registry

_UPDATE = xla_op_registry.register(
    "dynamic_update_slice", lambda x, piece, *starts: x.dynamic_update_slice(piece, starts)
)


def update_slice(
    x: Shaped[Tensor, "..."], piece: Shaped[Tensor, "..."], starts: Sequence[int | Int[Tensor, ""]]
) -> Any:
    """`x` with `piece` at a place that is known when the program runs; as `jax.lax.dynamic_update_slice`.

    PyTorch's `index_copy` and `index_put` also read what they overwrite, in case that the place is out of bounds, and
    in a scan XLA then copies the cache of all layers in every layer (docs/surprises/cache.py).
    """
    zero = torch.zeros((), dtype=torch.int32, device=x.device)
    return _UPDATE(x, piece, *(zero if isinstance(start, int) else start.int() for start in starts))
