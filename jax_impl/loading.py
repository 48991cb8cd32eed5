"""Arrays on the devices, each where the layout names it, one after the other: the host never holds two."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from flax import nnx

from jax_impl.about import CACHE, INPUTS
from jax_impl.cache import Cache
from jax_impl.step import Step

Numbers = Callable[[str, tuple[int, ...]], np.ndarray[Any, np.dtype[Any]]]
"""The numbers of an array by name and shape, flat or not; too few of them are repeated."""


def load_weights(step: Step, numbers: Numbers) -> nnx.State:
    return nnx.from_flat_state(
        [
            (path, weight.replace(_load(weight, ".".join(path), numbers)))
            for path, weight in nnx.to_flat_state(step.arguments[0])
        ]
    )


def load_cache(step: Step, numbers: Numbers) -> Cache:
    return Cache(*(_load(each, name, numbers) for (name, _), each in zip(CACHE, step.arguments[1], strict=True)))


def load_inputs(step: Step, numbers: Numbers) -> tuple[jax.Array, ...]:
    names = [name for name, _ in INPUTS[step.layout.case.phase]]
    return tuple(_load(each, name, numbers) for name, each in zip(names, step.arguments[2:], strict=True))


def _load(each: jax.ShapeDtypeStruct, name: str, numbers: Numbers) -> jax.Array:
    some = numbers(name, each.shape).astype(each.dtype)
    return jax.device_put(np.resize(some, each.shape), each.sharding)
