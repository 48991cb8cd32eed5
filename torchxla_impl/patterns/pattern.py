"""What a pattern is in PyTorch/XLA: a function of tensors, with the split of each tensor that it takes and gives."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch_xla.distributed.spmd as xs
from torch import Tensor

Spec = tuple[str | None, ...]

PATTERNS: dict[str, "Pattern"] = {}
"""By name: `matmul_contracting`."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A function, and for each dim of its tensors the axis that splits it."""

    function: Callable[..., Any]
    takes: Mapping[str, Spec]
    gives: tuple[Spec, ...]

    @property
    def source(self) -> str:
        return inspect.getsource(self.function)


def pattern(*, out: Spec | tuple[Spec, ...], **takes: Spec) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Keep a function under its name; what it takes and gives is marked with `xs.mark_sharding(x, mesh, spec)`."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        several = bool(out) and isinstance(out[0], tuple)
        PATTERNS[function.__name__] = Pattern(function, takes, out if several else (out,))  # type: ignore[arg-type]
        return function

    return keep


def pin(x: Tensor, *axes: str | None) -> Tensor:
    """Say how a tensor in the middle is split: an axis for each dim, or None.  The mesh is the one in use."""
    x = torch.ops.aten.alias(x)  # a mark is on the tensor itself, also where it is used elsewhere
    xs.mark_sharding(x, xs.get_global_mesh(), axes)  # type: ignore[arg-type]  # there is one
    return x
