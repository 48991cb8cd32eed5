"""What a pattern is in JAX: a function of arrays, with the split of each array that it takes and gives."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import PartitionSpec as P

PATTERNS: dict[str, "Pattern"] = {}
"""By name: `matmul_contracting`."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A function, and for each dim of its arrays the axis that splits it."""

    function: Callable[..., Any]
    takes: Mapping[str, P]
    gives: tuple[P, ...]

    @property
    def source(self) -> str:
        return inspect.getsource(self.function)


def pattern(*, out: P | tuple[P, ...], **takes: P) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Keep a function under its name; it becomes `jax.jit(function, in_shardings=takes, out_shardings=out)`."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        # A PartitionSpec is no tuple of them.
        gives = (out,) if isinstance(out, P) else tuple(out)
        PATTERNS[function.__name__] = Pattern(function, takes, gives)
        return function

    return keep


def pin(x: jax.Array, *axes: str | None) -> jax.Array:
    """Say how an array in the middle is split: an axis for each dim, or None.  The mesh is the one in use."""
    return jax.lax.with_sharding_constraint(x, P(*axes))
