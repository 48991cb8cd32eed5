"""Where tensors live: the verbs of a layout, as pins for GSPMD (see `meshes.twins.layout`)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
import torch_xla
import torch_xla.debug.profiler as xp
import torch_xla.distributed.spmd as xs
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from meshes.case import Case
from meshes.twins.layout import LayoutError, count_parts, enter_scope, is_pinned
from meshes.twins.positions import cache_positions, place_shift
from meshes.weights import dim_sizes, own_dims
from torchxla_impl.sharding.spec import DTYPES, constant, mark

STREAM = "stages stream_batch stream_seq embed"
"""The residual stream, between the blocks of a layer."""

TOKENS = "stages batch seq embed"
"""The same inside a block.  Under SEQUENCE_PARALLEL `tp` splits the stream, and not the tokens of a block."""

Stream = Shaped[Tensor, "stages stream_batch stream_seq embed"]
Block = Shaped[Tensor, "stages batch seq embed"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Places tensors: names of dims in, sharded tensors out.  Style is here, not in the model.

    `pinned` places activations, `weights` leaves them to the partitioner; for `explicit` see `ExplicitLayout`.
    """

    case: Case
    mesh: xs.Mesh

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.case.dtype]

    def num_parts(self, dim: str) -> int:
        """Into how many parts the dim of a tensor is split."""
        return count_parts(dim, case=self.case)

    def param(self, dims: str) -> nn.Parameter:
        """A weight with these dims and no memory, until one is loaded.

        `layers` are stacked in a scan; unrolled, each has its own.
        """
        sizes = dim_sizes(self.case)
        shape = [sizes[dim] for dim in own_dims(dims, loop=self.case.loop).split()]
        return nn.Parameter(torch.empty(shape, dtype=self.dtype, device="meta"), requires_grad=False)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """The part of the model, from `meshes.scopes`, that collectives in here are attributed to."""
        with enter_scope(name), xp.Trace(name):
            yield

    def as_global(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step of global tensors, built from the step of those that this layout hands to the model: here the same.

        takes, gives: dims, in the place of each tensor.
        """
        return step

    def place(self, x: Shaped[Tensor, "..."], dims: str) -> Shaped[Tensor, "..."]:
        """Pin an activation's sharding.  Collectives appear where two pins disagree."""
        if not is_pinned(self.case):
            return x
        # Marked is the tensor itself, also where it is used elsewhere; an alias is another one.
        return mark(torch.ops.aten.alias(x), dims, case=self.case, mesh=self.mesh)

    def gather_sequence(self, x: Stream) -> Block:
        """The tokens that a block reads.  Under SEQUENCE_PARALLEL an all-gather over `tp`."""
        return self.place(self.place(x, STREAM), TOKENS)

    def reduce_output(self, x: Block, *, over: str) -> Stream:
        """The sum over the shards of the dim `over`, into the stream: an all-reduce over `tp`.

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
        cut = tokens.unflatten(2, (self.num_parts("seq"), -1)).permute(2, 1, 0, 3)
        cut = cut.expand(self.case.mesh.pp, -1, -1, -1, -1)
        rows = F.embedding(self.place(cut, "stages parts batch slots _"), table)
        # [stages parts batch slots seq/parts embed] -> [slots stages batch seq embed]
        rows = rows.permute(3, 0, 2, 1, 4, 5).flatten(3, 4)
        return self.place(self.place(rows, f"slots {TOKENS}"), f"slots {STREAM}")

    def positions(self, first: Int[Tensor, ""], count: int) -> Int[Tensor, "seq"]:
        """The position of each of `count` tokens, the first's given.  No collective."""
        return first + torch.arange(count, device=first.device)

    def cache_positions(self) -> Int[Tensor, "length"]:
        """The position that each place of a cache is for.  No collective."""
        return constant(cache_positions(self.case))

    def cache_index(self, position: Int[Tensor, ""]) -> Int[Tensor, ""]:
        """The place of a position in a cache; a prompt begins at 0.  No collective."""
        return position if self.case.phase == "prefill" else position + place_shift(self.case)

    def max_over_parts(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The maximum over the parts of a split cache: here x is global, and has it."""
        return x

    def sum_over_parts(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The sum over the parts of a split cache: here x is global, and has it."""
        return x

    def ring(self, block: Callable[..., Tensor], *, takes: tuple[str, ...], gives: str) -> Callable[..., Tensor]:
        """Not offered: PyTorch/XLA 2.9 has no permute for a manually sharded region, so no program has a ring."""
        raise LayoutError("PyTorch/XLA 2.9 has no permute for a manually sharded region, and so no ring over cp")

    def to_experts(
        self, x: Shaped[Tensor, "stages _ groups slots embed"]
    ) -> Shaped[Tensor, "stages experts routed slots embed"]:
        """Each group's slots at every expert, to that expert: one all-to-all over `ep`."""
        return self.place(self.place(x, "stages _ groups _ embed"), "stages experts routed _ embed")

    def from_experts(
        self, x: Shaped[Tensor, "stages experts routed shards embed"]
    ) -> Shaped[Tensor, "stages _ groups shards embed"]:
        """The experts' output, back: one all-to-all over `ep`."""
        return self.place(x, "stages _ groups shards embed")

    @property
    def ticks(self) -> Int[Tensor, "ticks"]:
        """The ticks of the pipeline, each as its cache slot.

        In the bubble microbatches repeat.  What a stage then writes it has written before, to the same slot; and what
        it writes before its first microbatch comes is overwritten when that slot's own does.  So no tick needs a mask.
        """
        slots, stages = self.case.microbatches, self.case.mesh.pp
        ticks = slots + stages - 1
        return torch.arange(slots, device=torch_xla.device()).repeat(-(-ticks // slots))[:ticks]

    @property
    def tick_form(self) -> str:
        """How ticks are written: in a `scan`, or `unrolled`; a single one needs no loop."""
        return self.case.loop if self.case.microbatches + self.case.mesh.pp > 2 else "unrolled"

    def cache_slot(self, tick: Int[Tensor, ""]) -> Int[Tensor, ""]:
        """The slot of the cache that every stage uses in that tick."""
        return tick

    def on_first_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` on the first stage, which alone needs it: here on all."""
        return run(x)

    def on_active_stages(self, run: Callable[[Any], Any], carry: Any, *, tick: Int[Tensor, ""]) -> Any:
        """`run(carry)` on the stages that hold a microbatch in that tick: here on all, whatever they hold."""
        return run(carry)

    def on_last_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` where the last tokens come out of the last stage: here everywhere."""
        return run(x)

    def shift(self, state: Stream, taken: Stream, *, tick: Int[Tensor, ""]) -> Stream:
        """Each stage's state to the next, `taken` to the first: one collective-permute over `pp`.

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

    def last_tokens(
        self, x: Float[Tensor, "slots stages stream_batch stream_seq embed"]
    ) -> Float[Tensor, "slots stages batch parts embed"]:
        """The last token of each part of a sequence, of the last tokens of each shard's; whole over `tp`.

        No collective, but under SEQUENCE_PARALLEL: in prefill a masked sum, one all-reduce over `tp`; in decode one
        all-gather, of the sequences.
        """
        with self.scope("head"):
            parts = self.num_parts("parts")
            if x.shape[3] > parts:
                x = _last_of(x.unflatten(3, (parts, -1)), dim=4)
            return self.place(x, "slots stages batch parts embed")

    def sample(
        self, logits: Float[Tensor, "slots stages batch parts vocab"]
    ) -> Int[Tensor, "slots stages batch parts"]:
        """The greedy choice: two all-gathers over `tp`, of each shard's best value and of its id."""
        with self.scope("sample"):
            return self.place(torch.argmax(logits, dim=-1).int(), "slots stages batch parts")

    def collect(self, token_ids: Int[Tensor, "slots stages batch parts"]) -> Int[Tensor, "slots batch"]:
        """The last stage's ids of the last part, everywhere: masked sums, an all-reduce over `pp`, one over `cp`."""
        if self.num_parts("stages") * self.num_parts("parts") == 1:
            return token_ids[:, 0, :, 0]
        with self.scope("pipeline.collect"):
            token_ids = self.place(_last_of(token_ids, dim=1), "slots batch parts")
            return self.place(_last_of(token_ids, dim=2), "slots batch")


def _last_of(x: Shaped[Tensor, "..."], *, dim: int) -> Shaped[Tensor, "..."]:
    """The last row along a dim that a mesh may split: a masked sum, where a slice would send more."""
    size = x.shape[dim]
    if size == 1:
        return x.squeeze(dim)
    last = torch.arange(size, device=x.device) == size - 1
    return torch.where(last.reshape(-1, *(1,) * (x.ndim - dim - 1)), x, 0).sum(dim, dtype=x.dtype)
