"""Tensors on the devices, each where the layout names it, one after the other: the host never holds two."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchxla_impl.arguments import Argument
from torchxla_impl.cache import Cache
from torchxla_impl.step import Step

Numbers = Callable[[str, tuple[int, ...]], np.ndarray[Any, np.dtype[Any]]]
"""The numbers of a tensor by name and shape, flat or not; too few of them are repeated."""


def load_weights(step: Step, numbers: Numbers) -> dict[str, Tensor]:
    return {each.name: _load(step, each, numbers) for each in step.arguments if each.role == "weight"}


def load_cache(step: Step, numbers: Numbers) -> Cache:
    return Cache(*(_load(step, each, numbers) for each in step.arguments if each.role == "cache"))


def load_inputs(step: Step, numbers: Numbers) -> tuple[Tensor, ...]:
    return tuple(_load(step, each, numbers) for each in step.arguments if each.role == "input")


def _load(step: Step, each: Argument, numbers: Numbers) -> Tensor:
    some = torch.from_numpy(numbers(each.name, each.shape)).to(each.dtype)
    return step.layout.shard(resized(some, each.shape), each.dims)


def resized(some: Tensor, shape: tuple[int, ...]) -> Tensor:
    """As `numpy.resize`, which knows no bfloat16."""
    size = int(np.prod(shape, dtype=np.int64))
    return some.reshape(-1).repeat(-(-size // some.numel()))[:size].reshape(shape)
