"""The layout of style `explicit`: arrays are each device's own parts, and every collective is written by hand.

The whole step is one `shard_map` over all axes, in which XLA's partitioner has nothing to decide.  Where a device has
nothing to do it takes the other branch of a `cond`, so that idle stages send nothing.  Permutes stand in no branch (in
XLA's CPU runtime all devices meet in them): they have pairs of those that send, and no others.
"""

import functools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from jax_impl.sharding.layout import Block, Layout, Stream
from jax_impl.sharding.spec import named_sharding
from meshes.twins.layout import RING

STAGES, SHARDS, EXPERTS = "pp", "tp", "ep"

ROWS, LANES = 16, 128
"""Of the smallest matrix that libtpu scatters: two tiles of a TPU's memory, 8 × 128 each."""


_guarded_tick: ContextVar[int | None] = ContextVar("guarded_tick", default=None)
"""The tick whose layers idle stages run, too: there each collective is guarded by itself."""


@dataclass(frozen=True, eq=False)
class ExplicitLayout(Layout):
    """The verbs of a layout on local arrays: dims have the same names, and the sizes of one device's part."""

    def num_parts(self, dim: str) -> int:
        """Into how many parts the dim of a local array is split."""
        return 1

    def as_global(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step of global arrays: `step` on each device, of its own parts."""
        shapes, tree = jax.tree.flatten(takes)
        local = jax.shard_map(
            lambda *leaves: step(*jax.tree.unflatten(tree, leaves)),
            mesh=self.mesh,
            in_specs=tuple(shape.sharding.spec for shape in shapes),
            out_specs=jax.tree.map(lambda dims: named_sharding(dims, case=self.case, mesh=self.mesh).spec, gives),
            # Ids are on the first stage alone, logits on the last.
            check_vma=False,
        )
        return lambda *arguments: local(*jax.tree.leaves(arguments))

    def place(self, x: Shaped[Array, "..."], dims: str) -> Shaped[Array, "..."]:
        """No effect: a local array is on its device."""
        return x

    def gather_sequence(self, x: Stream) -> Block:
        dim = self._scattered
        return x if dim is None else self._guarded(lambda x: jax.lax.all_gather(x, SHARDS, axis=dim, tiled=True), x)

    def reduce_output(self, x: Block, *, over: str) -> Stream:
        split = self.case.rules[over] and self._size(SHARDS) > 1
        return self._guarded(lambda x: self._summed(x, dim=self._scattered), x) if split else x

    def lookup(
        self, table: Shaped[Array, "vocab embed"], tokens: Int[Array, "slots batch seq"]
    ) -> Shaped[Array, "slots stages stream_batch stream_seq embed"]:
        """Each shard's own rows, and zeros for others' ids: an all-reduce over `tp`, or a reduce-scatter."""
        tokens, dim = tokens[:, None], self._scattered
        if self._split("vocab") == 1:
            rows = jnp.take(table, tokens, axis=0, mode="clip")
            return rows if dim is None else self._own_part(rows, dim=1 + dim)
        local = tokens - jax.lax.axis_index(SHARDS) * table.shape[0]
        mine = (local >= 0) & (local < table.shape[0])
        rows = jnp.where(mine[..., None], jnp.take(table, local, axis=0, mode="clip"), 0)
        return self._summed(rows, dim=None if dim is None else 1 + dim)

    def positions(self, first: Int[Array, ""], count: int) -> Int[Array, "seq"]:
        split = self.case.phase == "prefill" and self._size(RING) > 1
        return (first + jax.lax.axis_index(RING) * count if split else first) + jnp.arange(count)

    def cache_positions(self) -> Int[Array, "length"]:
        places, ranks = super().cache_positions(), self._size(RING)
        return places.reshape(ranks, -1)[jax.lax.axis_index(RING)] if ranks > 1 else places

    def cache_index(self, position: Int[Array, ""]) -> Int[Array, ""]:
        """The same in every part: of all but the last it is a place for which no query looks."""
        place, ranks = super().cache_index(position), self._size(RING)
        return place if self.case.phase == "prefill" else place - (ranks - 1) * (self.case.cache_length // ranks)

    def max_over_parts(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The maximum over the parts of a split cache: an all-reduce over `cp`."""
        return jax.lax.pmax(x, RING)

    def sum_over_parts(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The sum over the parts of a split cache: an all-reduce over `cp`."""
        return jax.lax.psum(x, RING)

    def ring(self, block: Callable[..., Array], *, takes: tuple[str, ...], gives: str) -> Callable[..., Array]:
        """`block(rank, hop, *parts)`: arrays are each device's own parts already."""
        return functools.partial(block, jax.lax.axis_index(RING), self._hop)

    def to_experts(
        self, x: Shaped[Array, "stages _ groups slots embed"]
    ) -> Shaped[Array, "stages experts routed slots embed"]:
        return self._exchanged(x, cut=1, joined=2)

    def from_experts(
        self, x: Shaped[Array, "stages experts routed shards embed"]
    ) -> Shaped[Array, "stages _ groups shards embed"]:
        return self._exchanged(x, cut=2, joined=1)

    @property
    def ticks(self) -> Int[np.ndarray, "ticks"]:
        """The numbers of the ticks, known while tracing: the permutes of each tick have their own pairs."""
        return np.arange(self.case.microbatches + self._size(STAGES) - 1)

    @property
    def tick_form(self) -> str:
        return "unrolled"

    def cache_slot(self, tick: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.int32(tick % self.case.microbatches)

    def on_first_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` on the first stage; zeros elsewhere."""
        return self._where(self._first, run, x)

    def on_active_stages(self, run: Callable[[Any], Any], carry: Any, *, tick: Int[Array, ""]) -> Any:
        """`run(carry)` on the stages that hold a microbatch in that tick; the others keep what they have."""
        if self._size(STAGES) == 1:
            return run(carry)
        if self._choosers == list(range(self._size(RING))):
            return jax.lax.cond(self._busy(tick), run, lambda carry: carry, carry)
        # Around a ring go permutes, which stand in no branch.
        token = _guarded_tick.set(int(tick))
        try:
            after = run(carry)
        finally:
            _guarded_tick.reset(token)
        return jax.tree.map(functools.partial(jnp.where, self._busy(tick)), after, carry)

    def on_last_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` on the last stage, in prefill on the last part of each sequence; zeros elsewhere."""
        return self._where(self._at_end, run, x)

    def shift(self, state: Stream, taken: Stream, *, tick: Any) -> Stream:
        """Each stage's state to the next, `taken` to the first: one collective-permute over `pp`."""
        stages, slots = self._size(STAGES), self.case.microbatches
        pairs = [(stage, stage + 1) for stage in range(stages - 1) if 0 <= tick - 1 - stage < slots]
        with self.scope("pipeline.shift"):
            moved = jax.lax.ppermute(state, STAGES, pairs) if pairs else state
            return taken if stages == 1 else jnp.where(self._first, taken, moved)

    def last_tokens(
        self, x: Float[Array, "slots stages stream_batch stream_seq embed"]
    ) -> Float[Array, "slots stages batch parts embed"]:
        """The last token of each sequence.  No collective, but under SEQUENCE_PARALLEL.

        In prefill the last shard has them, and sends them to each other shard: tp − 1 collective-permutes of one pair.
        In decode one all-gather, of the sequences.
        """
        with self.scope("head"):
            if self._scattered == 1:
                return self.on_last_stage(lambda x: jax.lax.all_gather(x, SHARDS, axis=2, tiled=True), x)
            if self._scattered == 2:
                last = self._size(STAGES) * self._size(RING) * self._size(SHARDS) - 1
                others = range(last + 1 - self._size(SHARDS), last)
                return self._broadcast(x, (STAGES, RING, SHARDS), source=last, targets=others)
            return x

    def sample(self, logits: Float[Array, "slots stages batch parts vocab"]) -> Int[Array, "slots stages batch parts"]:
        """The greedy choice: two all-gathers over `tp`, of each shard's best value and of its id."""
        with self.scope("sample"):
            ids = jnp.argmax(logits, axis=-1).astype(jnp.int32)
            if self._split("vocab") == 1:
                return ids
            ids += jax.lax.axis_index(SHARDS) * logits.shape[-1]
            # Side by side in the last dim: else libtpu gathers bf16 by a sum, which sends twice as much.
            pair = (jnp.max(logits, axis=-1), ids)
            values, ids = (jax.lax.all_gather(each, SHARDS, axis=each.ndim) for each in pair)
            return jnp.take_along_axis(ids, jnp.argmax(values, axis=-1)[..., None], axis=-1)[..., 0]

    def collect(self, token_ids: Int[Array, "slots stages batch parts"]) -> Int[Array, "slots batch"]:
        """The last stage's ids to the first stage: a collective-permute over `pp`.

        In prefill the last part's alone, and then to the ranks of the others: cp − 1 of one pair each.
        """
        token_ids, stages, ranks = token_ids[:, 0, :, 0], self._size(STAGES), self._size(RING)
        with self.scope("pipeline.collect"):
            if stages > 1:
                pairs = [((stages - 1) * ranks + rank, rank) for rank in self._choosers]
                token_ids = jax.lax.ppermute(token_ids, (STAGES, RING), pairs)
            return self._broadcast(
                token_ids,
                (STAGES, RING),
                source=ranks - 1,
                targets=[r for r in range(ranks) if r not in self._choosers],
            )

    def _hop(self, x: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        """The x of the part before: one collective-permute over `cp`, of the stages that hold a microbatch."""
        tick = _guarded_tick.get()
        if tick is None:
            return super()._hop(x)
        ranks, slots = self._size(RING), self.case.microbatches
        busy = [stage for stage in range(self._size(STAGES)) if 0 <= tick - stage < slots]
        pairs = [(stage * ranks + at, stage * ranks + (at + 1) % ranks) for stage in busy for at in range(ranks)]
        return jax.lax.ppermute(x, (STAGES, RING), pairs)

    def _size(self, axis: str) -> int:
        return self.case.mesh.axes[axis]

    def _split(self, dim: str) -> int:
        return super().num_parts(dim)

    @property
    def _scattered(self) -> int | None:
        """Which dim of the stream `tp` splits, counted from its stages."""
        for number, dim in ((1, "stream_batch"), (2, "stream_seq")):
            if SHARDS in (self.case.rules[dim] or "").split(",") and self._size(SHARDS) > 1:
                return number
        return None

    @property
    def _choosers(self) -> list[int]:
        """The ranks of `cp` that choose tokens: in prefill the one with the last part of a sequence."""
        ranks = list(range(self._size(RING)))
        return ranks[-1:] if self.case.phase == "prefill" else ranks

    @property
    def _first(self) -> Bool[Array, ""] | bool:
        return True if self._size(STAGES) == 1 else jax.lax.axis_index(STAGES) == 0

    @property
    def _at_end(self) -> Bool[Array, ""] | bool:
        stages, ranks = self._size(STAGES), self._size(RING)
        here = True if stages == 1 else jax.lax.axis_index(STAGES) == stages - 1
        return here if len(self._choosers) == ranks else here & (jax.lax.axis_index(RING) == ranks - 1)

    def _busy(self, tick: Any) -> Bool[Array, ""]:
        microbatch = int(tick) - jax.lax.axis_index(STAGES)
        return (microbatch >= 0) & (microbatch < self.case.microbatches)

    def _guarded(self, run: Callable[[Any], Any], x: Any) -> Any:
        tick = _guarded_tick.get()
        return run(x) if tick is None else self._where(self._busy(tick), run, x)

    def _where(self, here: Bool[Array, ""] | bool, run: Callable[[Any], Any], x: Any) -> Any:
        if here is True:
            return run(x)
        result = jax.eval_shape(run, x)
        return jax.lax.cond(
            here, run, lambda _: jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), result), x
        )

    def _summed(self, x: Shaped[Array, "..."], *, dim: int | None) -> Shaped[Array, "..."]:
        if dim is None:
            return jax.lax.psum(x, SHARDS)
        if _scatters(x.shape, dim=dim, ways=self._size(SHARDS)):
            return jax.lax.psum_scatter(x, SHARDS, scatter_dimension=dim, tiled=True)
        return self._scattered_parts(x, dim=dim)

    def _scattered_parts(self, x: Shaped[Array, "..."], *, dim: int) -> Shaped[Array, "..."]:
        """A reduce-scatter of what libtpu would not scatter as it is: of parts that are whole tiles, in the first dim.

        Parts of no even number of tiles are exchanged, and added up where they come: an all-to-all of as many bytes.
        """
        shards = self._size(SHARDS)
        parts = jnp.stack(jnp.split(x, shards, axis=dim))
        if parts[0].size % (ROWS * LANES):
            received = jax.lax.all_to_all(parts, SHARDS, split_axis=0, concat_axis=0, tiled=True)
            return jnp.sum(received, axis=0, dtype=jnp.float32).astype(x.dtype)
        tiles = parts.reshape(shards, -1, LANES)
        return jax.lax.psum_scatter(tiles, SHARDS, scatter_dimension=0, tiled=True).reshape(parts.shape[1:])

    def _own_part(self, x: Shaped[Array, "..."], *, dim: int) -> Shaped[Array, "..."]:
        size = x.shape[dim] // self._size(SHARDS)
        return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(SHARDS) * size, size, axis=dim)

    def _exchanged(self, x: Shaped[Array, "..."], *, cut: int, joined: int) -> Shaped[Array, "..."]:
        if self._size(EXPERTS) == 1:
            return x
        sent = functools.partial(jax.lax.all_to_all, axis_name=EXPERTS, split_axis=cut, concat_axis=joined, tiled=True)
        return self._guarded(sent, x)

    def _broadcast(self, x: Shaped[Array, "..."], axes: tuple[str, ...], *, source: int, targets: Any) -> Any:
        """From one member of each group to the others, a permute for each: libtpu lowers no broadcast."""
        index, received = jax.lax.axis_index(axes), x
        for target in targets:
            received = jnp.where(index == target, jax.lax.ppermute(x, axes, [(source, target)]), received)
        return received


def _scatters(shape: tuple[int, ...], *, dim: int, ways: int) -> bool:
    """Whether libtpu scatters this dim as it is: `reduce-scatter-decomposer` makes all-reduces of the others.

    Measured on v5e and v6e: the last dim but one, parts of whole rows of tiles, and more than one such matrix.
    """
    *outer, rows, lanes = (size // ways if at == dim else size for at, size in enumerate(shape))
    return dim == len(shape) - 2 and prod(outer) > 1 and rows % ROWS == 0 and lanes % LANES == 0
