"""Tensors on the devices, each where the layout names it; the host holds one at a time, of a checkpoint one piece."""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import torch_xla
from torch import Tensor
from torch_xla.utils.buffer_donor_context import alias_with_buffer_donor_config

from meshes.case import Case
from meshes.twins.layout import partition_axes
from meshes.weights import WeightSpec, weights
from torchxla_impl.decoder.arguments import Argument
from torchxla_impl.decoder.cache import Caches, make_caches
from torchxla_impl.decoder.step import Step
from torchxla_impl.sharding.lowering import shard

Numbers = Callable[[str, tuple[int, ...]], np.ndarray[Any, np.dtype[Any]]]
"""Values of a tensor by name and shape, flat or not; repeated where there are too few."""

Index = tuple[slice, ...]

Read = Callable[[WeightSpec, Index, Case], np.ndarray[Any, np.dtype[Any]]]
"""A slice of a weight, in the case's dtype; bf16 as its bits (uint16)."""

PIECE_BYTES = 2**24
"""Of a weight, brought to the devices at a time; on the way there are about six copies of a piece."""


def load_weights(step: Step, numbers: Numbers) -> dict[str, Tensor]:
    return {each.name: _load(step, each, numbers) for each in step.arguments if each.role == "weight"}


def load_cache(step: Step, numbers: Numbers) -> Caches:
    given = {each.name: each for each in step.arguments}
    return make_caches(step.layout.case, lambda name: _load(step, given[name], numbers))


def load_inputs(step: Step, numbers: Numbers) -> tuple[Tensor, ...]:
    return tuple(_load(step, each, numbers) for each in step.arguments if each.role == "input")


def read_weights(step: Step, read: Read) -> dict[str, Tensor]:
    """The weights of a checkpoint, piece by piece: the host holds a piece beside what is on devices."""
    _return_freed_memory()
    case, tensors = step.layout.case, {}
    for spec in weights(case):
        tensors[spec.name] = _read(step, spec, partial(_read_piece, read, spec, case))
    return tensors


def _read_piece(read: Read, spec: WeightSpec, case: Case, index: Index) -> Tensor:
    return _tensor(read(spec, index, case))


def empty_cache(step: Step) -> Caches:
    """A cache of zeros, made on the devices."""
    given = {each.name: each for each in step.arguments}
    return make_caches(step.layout.case, lambda name: _zeros(step, given[name].shape, given[name].dims))


def _load(step: Step, each: Argument, numbers: Numbers) -> Tensor:
    values = torch.from_numpy(numbers(each.name, each.shape)).to(each.dtype)
    return shard(step.layout, _repeat_to(values, each.shape), each.dims)


def _repeat_to(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """As `numpy.resize`, which knows no bfloat16."""
    size = int(np.prod(shape, dtype=np.int64))
    return values.reshape(-1).repeat(-(-size // values.numel()))[:size].reshape(shape)


def _tensor(numbers: np.ndarray[Any, np.dtype[Any]]) -> Tensor:
    return torch.from_numpy(numbers).view(torch.bfloat16) if numbers.dtype == np.uint16 else torch.from_numpy(numbers)


def _zeros(step: Step, shape: tuple[int, ...], dims: str) -> Tensor:
    zeros = shard(step.layout, torch.zeros(shape, dtype=step.layout.dtype, device=torch_xla.device()), dims)
    torch_xla.sync(wait=True)
    return zeros


def _read(step: Step, spec: WeightSpec, read: Callable[[Index], Tensor]) -> Tensor:
    """One weight.  A large one is written on the devices, in place: PyTorch/XLA would take it whole on the host."""
    layout = step.layout
    axes = partition_axes(spec.dims, case=layout.case)
    pieces = list(_pieces(spec, axes=axes, most=PIECE_BYTES // layout.dtype.itemsize))
    if len(pieces) == 1:
        return shard(layout, read(pieces[0]), spec.dims)
    weight = _zeros(step, spec.shape, spec.dims)
    for index in pieces:
        piece = shard(layout, read(index), spec.dims)
        torch_xla._XLAC._set_buffer_donation(weight, True)
        weight = shard(layout, _write(weight, piece, index), spec.dims)
        with alias_with_buffer_donor_config():
            torch_xla.sync(wait=True)
    return weight


def _write(old: Tensor, piece: Tensor, index: Index) -> Tensor:
    """`old` with a piece in its place.  As a select: unlike a scatter, it stays bf16 on a CPU."""
    pads: list[int] = []
    inside = torch.ones((), dtype=torch.bool, device=old.device)
    for dim, (side, size) in enumerate(zip(index, old.shape, strict=True)):
        pads = [side.start, size - side.stop, *pads]
        if side.stop - side.start < size:
            at = torch.arange(size, device=old.device).reshape(-1, *[1] * (old.ndim - dim - 1))
            inside = inside & (at >= side.start) & (at < side.stop)
    return torch.where(inside, F.pad(piece, pads), old)


def _pieces(spec: WeightSpec, *, axes: tuple[Any, ...], most: int) -> Iterator[Index]:
    """Slices of at most `most` elements that fill a weight, cut along dims that no axis splits, outer ones first."""
    sides = list(spec.shape)
    for dim in (at for at, axis in enumerate(axes) if axis is None):
        if prod(sides) <= most:
            break
        sides[dim] = max(most // (prod(sides) // sides[dim]), 1)
    starts = (range(0, size, side) for size, side in zip(spec.shape, sides, strict=True))
    for corner in product(*starts):
        yield tuple(slice(at, min(at + side, size)) for at, side, size in zip(corner, sides, spec.shape, strict=True))


def _return_freed_memory() -> None:
    """Have the C library give memory back as soon as it is freed: it keeps blocks of some MB for later otherwise."""
    threshold = -3  # M_MMAP_THRESHOLD
    ctypes.CDLL(None).mallopt(threshold, 2**20)
