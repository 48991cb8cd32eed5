"""The layout of style `explicit`: tensors are each device's own parts, and every collective is written by hand.

The whole step is one manually sharded region.  PyTorch/XLA 2.9 has two collectives that may stand in one, an all-reduce
and a reduce-scatter; so this is offered where those suffice.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import torch_xla
import torch_xla.distributed.spmd as xs
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.utils import _pytree as tree
from torch_xla.core import xla_model as xm

from meshes.case import Case
from meshes.dims import is_sequence_parallel
from meshes.process.errors import NotOfferedError
from meshes.twins.layout import partition_axes
from meshes.weights import own_dims
from torchxla_impl.sharding.layout import Block, Layout, Stream
from torchxla_impl.sharding.spec import annotate, constant

SHARDS = "tp"

WITHOUT = {
    "pp": "a permute for the pipeline's shift",
    "cp": "a permute for the ring",
    "ep": "an all-to-all for the experts",
}
"""What a mesh with this axis needs, and PyTorch/XLA 2.9 does not offer in a manually sharded region."""


def check(case: Case) -> None:
    """Raise `NotOfferedError` where the case needs more than a manually sharded region offers."""
    needed = [what for axis, what in WITHOUT.items() if case.mesh.axes[axis] > 1]
    if is_sequence_parallel(case.plan.rules):
        needed.append("an all-gather for the split stream")
    if needed:
        raise NotOfferedError(
            f"style explicit is not offered by PyTorch/XLA 2.9 on mesh {case.plan.name}: its manual sharding has an "
            f"all-reduce and a reduce-scatter alone, and this needs {', '.join(needed)}; offered are dp and tp"
        )


class ExplicitLayout(Layout):
    """The verbs of a layout on local tensors: dims have the same names, and the sizes of one device's part."""

    def num_parts(self, dim: str) -> int:
        """Into how many parts the dim of a local tensor is split."""
        return 1

    def as_global(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step of global tensors: `step` on each device, of its own parts."""

        def run(*arguments: Any) -> Any:
            results = step(*tree.tree_map(self._to_local, arguments, takes))
            return tree.tree_map(self._to_global, results, gives)

        return run

    def param(self, dims: str) -> nn.Parameter:
        """This device's part of a weight."""
        weight = super().param(dims)
        own = own_dims(dims, loop=self.case.loop).split()
        shape = [size // self._parts(dim) for size, dim in zip(weight.shape, own, strict=True)]
        return nn.Parameter(weight.new_empty(shape), requires_grad=False)

    def place(self, x: Shaped[Tensor, "..."], dims: str) -> Shaped[Tensor, "..."]:
        """No effect: a local tensor is on its device."""
        return x

    def gather_sequence(self, x: Stream) -> Block:
        return x

    def reduce_output(self, x: Block, *, over: str) -> Stream:
        return self._summed(x) if self.case.rules[over] else x

    def lookup(
        self, table: Shaped[Tensor, "vocab embed"], tokens: Int[Tensor, "slots batch seq"]
    ) -> Shaped[Tensor, "slots stages batch seq embed"]:
        """Each shard's own rows, and zeros for others' ids: an all-reduce over `tp`."""
        tokens = tokens[:, None]
        if not self.case.rules["vocab"]:
            return F.embedding(tokens, table)
        local = tokens - self._shard() * table.shape[0]
        mine = (local >= 0) & (local < table.shape[0])
        rows = F.embedding(local.clamp(0, table.shape[0] - 1), table)
        return self._summed(torch.where(mine[..., None], rows, 0))

    def sample(
        self, logits: Float[Tensor, "slots stages batch parts vocab"]
    ) -> Int[Tensor, "slots stages batch parts"]:
        """The greedy choice: two all-reduces over `tp`, of each shard's best value and of its id, at its own place.

        A manually sharded region has no all-gather.
        """
        with self.scope("sample"):
            best, ids = torch.max(logits, dim=-1)
            if not self.case.rules["vocab"]:
                return ids.int()
            shards = self.case.mesh.axes[SHARDS]
            mine = torch.arange(shards, device=logits.device) == self._shard()
            ids = ids.int() + self._shard() * logits.shape[-1]
            best, ids = (self._summed(torch.where(mine, each[..., None], 0)) for each in (best, ids))
            return torch.gather(ids, -1, torch.argmax(best, dim=-1)[..., None])[..., 0]

    def _parts(self, dim: str) -> int:
        """Into how many parts the dim of a global tensor is split."""
        return 1 if dim == "_" else super().num_parts(dim)

    def _shard(self) -> Int[Tensor, "1"]:
        """Which part of what `tp` splits this device has."""
        return self._own_part(constant(np.arange(self.case.mesh.axes[SHARDS], dtype=np.int32)), (SHARDS,))

    def _summed(self, x: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        if self.case.mesh.axes[SHARDS] == 1:
            return x
        groups = [list(group) for group in self.case.mesh.groups(SHARDS)]
        return torch_xla._XLAC._xla_spmd_all_reduce(xm.REDUCE_SUM, x, 1.0, groups)

    def _to_local(self, x: Shaped[Tensor, "..."], dims: str) -> Shaped[Tensor, "..."]:
        """This device's part of a global tensor."""
        return self._own_part(x, partition_axes(dims, case=self.case))

    def _own_part(self, x: Shaped[Tensor, "..."], axes: Any) -> Shaped[Tensor, "..."]:
        # `mark_sharding` moves data, and where a program is only traced there is none.
        return torch_xla._XLAC._spmd_full_to_shard_shape(annotate(x, axes, mesh=self.mesh))

    def _to_global(self, x: Shaped[Tensor, "..."], dims: str) -> Shaped[Tensor, "..."]:
        """The global tensor that this device has a part of."""
        shape = [size * self._parts(dim) for size, dim in zip(x.shape, dims.split(), strict=True)]
        x = torch.ops.aten.alias(x)
        manual = torch_xla._XLAC.OpSharding([], [], [], xs.ShardingType.MANUAL)
        torch_xla._XLAC._mark_manual_sharding(x, manual)
        return torch_xla._XLAC._spmd_shard_to_full_shape(
            x, self.mesh.get_op_sharding(partition_axes(dims, case=self.case)), torch.Size(shape), x.dtype
        )
