"""Arrays on the devices, each where the layout names it; the host holds one at a time, of a checkpoint one shard."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jax_impl.decoder.cache import Caches, make_caches
from jax_impl.decoder.step import Step
from jax_impl.process.about import INPUTS
from jax_impl.sharding.layout import Weights
from meshes.case import Case
from meshes.weights import WeightSpec, weights

Numbers = Callable[[str, tuple[int, ...]], np.ndarray[Any, np.dtype[Any]]]
"""Values of an array by name and shape, flat or not; repeated where there are too few."""

Read = Callable[[WeightSpec, tuple[slice, ...], Case], np.ndarray[Any, np.dtype[Any]]]
"""A slice of a weight, in the case's dtype; bf16 as its bits (uint16)."""


def load_weights(step: Step, numbers: Numbers) -> Weights:
    return make_weights(step, lambda name, each: _load(each, name, numbers))


def load_cache(step: Step, numbers: Numbers) -> Caches:
    each = jax.tree.leaves(step.arguments[1])[0]  # all alike
    return make_caches(step.layout.case, lambda name: _load(each, name, numbers))


def load_inputs(step: Step, numbers: Numbers) -> tuple[jax.Array, ...]:
    names = [name for name, _ in INPUTS[step.layout.case.phase]]
    return tuple(_load(each, name, numbers) for name, each in zip(names, step.arguments[2:], strict=True))


def read_weights(step: Step, read: Read) -> Weights:
    """The weights of a checkpoint, shard by shard: the host holds one shard beside those that are on devices."""
    specs = {spec.name: spec for spec in weights(step.layout.case)}

    def read_array(name: str, each: jax.ShapeDtypeStruct) -> jax.Array:
        return _read(each, lambda index: read(specs[name], index, step.layout.case))

    return make_weights(step, read_array)


def empty_cache(step: Step) -> Caches:
    """A cache of zeros, made on the devices."""
    return jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype, device=each.sharding), step.arguments[1])


def make_weights(step: Step, make: Callable[[str, jax.ShapeDtypeStruct], jax.Array]) -> Weights:
    """Each weight by its name and its shape with sharding."""
    flat = nnx.to_flat_state(step.arguments[0])
    return nnx.from_flat_state(
        [(path, weight.replace(make(".".join(map(str, path)), weight.get_value()))) for path, weight in flat]
    )


def _load(each: jax.ShapeDtypeStruct, name: str, numbers: Numbers) -> jax.Array:
    values = numbers(name, each.shape).astype(each.dtype)
    return jax.device_put(np.resize(values, each.shape), each.sharding)


def _read(each: jax.ShapeDtypeStruct, read: Callable[[tuple[slice, ...]], np.ndarray[Any, np.dtype[Any]]]) -> jax.Array:
    """One array; what several devices hold alike is read once."""
    devices: dict[tuple[tuple[int, int], ...], list[jax.Device]] = {}
    for device, index in each.sharding.addressable_devices_indices_map(each.shape).items():
        box = tuple(side.indices(size)[:2] for side, size in zip(index, each.shape, strict=True))
        devices.setdefault(box, []).append(device)
    shards = []
    for box, holders in devices.items():
        numbers = read(tuple(slice(*side) for side in box))
        shards += jax.block_until_ready([jax.device_put(numbers.view(each.dtype), device) for device in holders])
    return jax.make_array_from_single_device_arrays(each.shape, each.sharding, shards)
