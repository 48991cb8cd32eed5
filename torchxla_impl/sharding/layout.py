"""Where tensors live: the one file of this twin that touches PyTorch/XLA's sharding API."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import torch_xla
import torch_xla.debug.profiler as xp
import torch_xla.distributed.spmd as xs
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch_xla.core import xla_builder

from meshes.case import Case
from meshes.dims import axes_of
from meshes.positions import held, place_shift
from meshes.process.errors import MeshError
from meshes.variants import pinned
from meshes.weights import dim_sizes

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}

MAX_RANK = 5
"""PyTorch/XLA turns a sharding of more dims into another one, and says so in a log line only."""


STREAM = "stages stream_batch stream_seq embed"
"""The residual stream, between the blocks of a layer."""

TOKENS = "stages batch seq embed"
"""The same inside a block.  Under SEQUENCE_PARALLEL `tp` splits the stream, and not the tokens of a block."""


Stream = Shaped[Tensor, "stages stream_batch stream_seq embed"]
Block = Shaped[Tensor, "stages batch seq embed"]


class LayoutError(MeshError):
    """A tensor that this layout cannot place."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Places tensors: names of dims in, sharded tensors out.  Style is here, not in the model.

    `pinned` places activations, `weights` leaves them to the partitioner; of `explicit` see `ExplicitLayout`.
    """

    case: Case
    mesh: xs.Mesh
    _scopes: list[str] = field(default_factory=list, repr=False)

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.case.dtype]

    def spec(self, dims: str) -> tuple[str | tuple[str, ...] | None, ...]:
        """The partition spec of a tensor with these dims, `_` for one that is never split."""
        axes = axes_of(dims, rules=self.case.rules)
        if len(axes) > MAX_RANK:
            raise LayoutError(f"{dims!r} names {len(axes)} dims; a tensor is sharded over at most {MAX_RANK}")
        return axes

    def sharding(self, dims: str) -> str:
        """The sharding as XLA writes it, in PyTorch/XLA's own translation."""
        probe = torch.ops.aten.alias(self.placeholder((1,) * len(dims.split()), torch.float32))
        torch_xla._XLAC._xla_annotate_custom_sharding(probe, self.mesh.get_op_sharding(self.spec(dims)))
        return str(torch_xla._XLAC._get_xla_sharding_spec(probe))

    def ways(self, dim: str) -> int:
        """Into how many parts the dim of a tensor is split."""
        axes = (self.case.rules[dim] or "").split(",")
        return prod(self.case.mesh.axes[axis] for axis in axes if axis)

    def param(self, dims: str) -> nn.Parameter:
        """A weight with these dims and no memory, until one is loaded."""
        sizes = dim_sizes(self.case)
        shape = [sizes[dim] for dim in dims.split()]
        return nn.Parameter(torch.empty(shape, dtype=self.dtype, device="meta"), requires_grad=False)

    def placeholder(self, shape: tuple[int, ...], dtype: torch.dtype) -> Shaped[Tensor, "..."]:
        """A parameter of a program that will be traced and not run: it costs no memory.

        `mark_sharding` moves data, and there is none: `lower` writes `sharding` onto the parameter.
        """
        return xla_builder.create_placeholder_tensor(shape, dtype)

    def constant(self, values: np.ndarray[Any, np.dtype[Any]]) -> Shaped[Tensor, "..."]:
        """Numbers in the text of the program; brought from the host, they would be one more parameter of it."""
        anchor = torch.zeros((), device=torch_xla.device())
        builder = xla_builder.create_builder("constant")
        # A computation without a parameter is refused.
        xla_builder.mkparam(builder, 0, xla_builder.tensor_shape(anchor))
        made = xla_builder.Op.constant(builder, torch.from_numpy(values)).build("constant")
        return torch_xla._XLAC._xla_user_computation("xla::constant", [anchor], made)[0]

    def shard(self, x: Shaped[Tensor, "..."], dims: str) -> Shaped[Tensor, "..."]:
        """Bring a tensor to the devices, each its part."""
        return self._marked(x.to(torch_xla.device()), dims)

    def whole(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step of whole tensors, given one of what this layout hands to the model: here the same.

        takes, gives: dims, in the place of each tensor.
        """
        return step

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """The part of the model, of the closed list, that asks for what is sent in here."""
        self._scopes.append(name)
        try:
            with xp.Trace(name):
                yield
        finally:
            self._scopes.pop()

    @property
    def pins(self) -> bool:
        """Whether an activation is pinned here, in the innermost scope."""
        return pinned(self.case, self._scopes[-1] if self._scopes else "")

    def place(self, x: Shaped[Tensor, "..."], dims: str) -> Shaped[Tensor, "..."]:
        """Pin an activation's sharding.  Collectives appear where two pins disagree."""
        # Marked is the tensor itself, also where it is used elsewhere; an alias is another one.
        return self._marked(torch.ops.aten.alias(x), dims) if self.pins else x

    def tokens(self, x: Stream) -> Block:
        """The tokens that a block reads.  Under SEQUENCE_PARALLEL an all-gather over `tp`."""
        return self.place(self.place(x, STREAM), TOKENS)

    def summed(self, x: Block, *, over: str) -> Stream:
        """What the shards of the dim `over` add to the stream: an all-reduce over `tp`.

        Under SEQUENCE_PARALLEL a reduce-scatter.
        """
        return self.place(x, STREAM)

    def lookup(
        self, table: Shaped[Tensor, "vocab embed"], tokens: Int[Tensor, "slots batch seq"]
    ) -> Shaped[Tensor, "slots stages stream_batch stream_seq embed"]:
        """Rows of a table, each on the shard that has its part of the vocabulary: an all-reduce over `tp`.

        Under SEQUENCE_PARALLEL a reduce-scatter.  Looked up on every stage, though the first alone needs it: a lookup
        is cheaper than sending it.
        """
        # The ids are flattened for the lookup: split dims come first, or their shards would be torn and gathered.
        cut = tokens.unflatten(2, (self.ways("seq"), -1)).permute(2, 1, 0, 3)
        cut = cut.expand(self.case.mesh.pp, -1, -1, -1, -1)
        found = F.embedding(self.place(cut, "stages parts batch slots _"), table)
        found = found.permute(3, 0, 2, 1, 4, 5).flatten(3, 4)
        return self.place(self.place(found, f"slots {TOKENS}"), f"slots {STREAM}")

    def positions(self, first: Int[Tensor, ""], count: int) -> Int[Tensor, "seq"]:
        """The position of each of the tokens of a tensor, that of the first of all given.  No collective."""
        return first + torch.arange(count, device=first.device)

    def held(self) -> Int[Tensor, "length"]:
        """The position that each place of a cache is for.  No collective."""
        return self.constant(held(self.case))

    def cache_place(self, position: Int[Tensor, ""]) -> Int[Tensor, ""]:
        """Where a token's keys and values stand in a cache.  No collective."""
        return position + place_shift(self.case)

    def to_experts(
        self, x: Shaped[Tensor, "stages _ groups slots embed"]
    ) -> Shaped[Tensor, "stages experts routed slots embed"]:
        """Each group's places at every expert, to that expert: one all-to-all over `ep`."""
        return self.place(self.place(x, "stages _ groups _ embed"), "stages experts routed _ embed")

    def from_experts(
        self, x: Shaped[Tensor, "stages experts routed shards embed"]
    ) -> Shaped[Tensor, "stages _ groups shards embed"]:
        """What the experts made of them, back: one all-to-all over `ep`."""
        return self.place(x, "stages _ groups shards embed")

    def _marked(self, x: Tensor, dims: str) -> Tensor:
        if x.ndim != len(dims.split()):
            raise LayoutError(f"{dims!r} names {len(dims.split())} dims; the tensor has {x.ndim}")
        xs.mark_sharding(x, self.mesh, self.spec(dims))
        return x

    def shift(
        self, state: Float[Tensor, "stages batch seq embed"], taken: Float[Tensor, "stages batch seq embed"]
    ) -> Float[Tensor, "stages batch seq embed"]:
        """Each stage's state to the next stage, `taken` to the first: one collective-permute over `pp`.

        Written as a pad and a slice, which send nothing from the last stage; `torch.roll` wraps around.
        """
        stages = self.case.mesh.pp
        if stages == 1:
            return self.place(taken, STREAM)
        with self.scope("pipeline.shift"):
            moved = F.pad(state, (0, 0) * (state.ndim - 1) + (1, 0))[:stages]
            first = torch.arange(stages, device=state.device) == 0
            moved = torch.where(first[:, None, None, None], taken, self.place(moved, STREAM))
            return self.place(moved, STREAM)

    def last(
        self, x: Float[Tensor, "slots stages stream_batch stream_seq embed"]
    ) -> Float[Tensor, "slots stages batch parts embed"]:
        """The last token of each part of a sequence, of the last tokens of each shard's; whole over `tp`.

        No collective, but under SEQUENCE_PARALLEL: in prefill a masked sum, one all-reduce over `tp`; in decode one
        all-gather, of the sequences.
        """
        with self.scope("head"):
            parts = self.ways("parts")
            if x.shape[3] > parts:
                x = _last_of(x.unflatten(3, (parts, -1)), dim=4)
            return self.place(x, "slots stages batch parts embed")

    def sample(
        self, logits: Float[Tensor, "slots stages batch parts vocab"]
    ) -> Int[Tensor, "slots stages batch parts"]:
        """The greedy choice: two all-gathers over `tp`, of each shard's best value and of its id."""
        with self.scope("sample"):
            return self.place(torch.argmax(logits, dim=-1).int(), "slots stages batch parts")

    def collect(self, chosen: Int[Tensor, "slots stages batch parts"]) -> Int[Tensor, "slots batch"]:
        """The last stage's ids of the last part, everywhere: masked sums, an all-reduce over `pp`, one over `cp`."""
        if self.ways("stages") * self.ways("parts") == 1:
            return chosen[:, 0, :, 0]
        with self.scope("pipeline.collect"):
            chosen = self.place(_last_of(chosen, dim=1), "slots batch parts")
            return self.place(_last_of(chosen, dim=2), "slots batch")


def _last_of(x: Shaped[Tensor, "..."], *, dim: int) -> Shaped[Tensor, "..."]:
    """The last row along a dim that a mesh may split: a masked sum, where a slice would send more."""
    size = x.shape[dim]
    if size == 1:
        return x.squeeze(dim)
    last = torch.arange(size, device=x.device) == size - 1
    return torch.where(last.reshape(-1, *(1,) * (x.ndim - dim - 1)), x, 0).sum(dim, dtype=x.dtype)
