"""A step as placeholders, and tensors on the devices: what lowering needs of a layout, and the model does not."""

import torch
import torch_xla
from jaxtyping import Shaped
from torch import Tensor
from torch_xla.core import xla_builder

from meshes.twins.layout import partition_axes
from torchxla_impl.sharding.layout import Layout
from torchxla_impl.sharding.spec import annotate, mark


def placeholder(shape: tuple[int, ...], dtype: torch.dtype) -> Shaped[Tensor, "..."]:
    """A parameter of a program that will be traced and not run: it costs no memory.

    `mark_sharding` moves data, and there is none: `lower` writes `format_sharding` onto the parameter.
    """
    return xla_builder.create_placeholder_tensor(shape, dtype)


def format_sharding(layout: Layout, dims: str) -> str:
    """The sharding as XLA writes it, in PyTorch/XLA's own translation."""
    axes = partition_axes(dims, case=layout.case)
    probe = annotate(placeholder((1,) * len(axes), torch.float32), axes, mesh=layout.mesh)
    return str(torch_xla._XLAC._get_xla_sharding_spec(probe))


def shard(layout: Layout, x: Shaped[Tensor, "..."], dims: str) -> Shaped[Tensor, "..."]:
    """Bring a tensor to the devices, each its part."""
    return mark(x.to(torch_xla.device()), dims, case=layout.case, mesh=layout.mesh)
