"""Names of dims to PyTorch/XLA's shardings, and numbers of the program itself."""

from typing import Any

import numpy as np
import torch
import torch_xla
import torch_xla.distributed.spmd as xs
from jaxtyping import Shaped
from torch import Tensor
from torch_xla.core import xla_builder

from meshes.case import Case
from meshes.twins.layout import check_dims, partition_axes

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
"""By the `dtype` of a `Case`."""


def mark(x: Shaped[Tensor, "..."], dims: str, *, case: Case, mesh: xs.Mesh) -> Shaped[Tensor, "..."]:
    """Shard this tensor itself, also where it is used elsewhere: `_` for a dim that is never split.  It moves data."""
    check_dims(dims, rank=x.ndim)
    xs.mark_sharding(x, mesh, partition_axes(dims, case=case))
    return x


def annotate(x: Shaped[Tensor, "..."], axes: Any, *, mesh: xs.Mesh) -> Shaped[Tensor, "..."]:
    """An alias with this sharding, of a tensor that need have no data.  axes: of each dim."""
    x = torch.ops.aten.alias(x)
    torch_xla._XLAC._xla_annotate_custom_sharding(x, mesh.get_op_sharding(axes))
    return x


def constant(values: np.ndarray[Any, np.dtype[Any]]) -> Shaped[Tensor, "..."]:
    """Numbers in the text of the program; brought from the host, they would be one more parameter of it."""
    anchor = torch.zeros((), device=torch_xla.device())
    builder = xla_builder.create_builder("constant")
    # A computation without a parameter is refused.
    xla_builder.mkparam(builder, 0, xla_builder.tensor_shape(anchor))
    computation = xla_builder.Op.constant(builder, torch.from_numpy(values)).build("constant")
    return torch_xla._XLAC._xla_user_computation("xla::constant", [anchor], computation)[0]
