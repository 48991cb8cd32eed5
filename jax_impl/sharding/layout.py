"""Where arrays live: the verbs of a layout, as pins and constraints for XLA (see `meshes.twins.layout`)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import AbstractMesh, Mesh
from jaxtyping import Array, Float, Int, Shaped

from jax_impl.sharding.spec import DTYPES, named_sharding
from meshes.case import Case
from meshes.twins.layout import RING, check_dims, count_parts, enter_scope, is_pinned
from meshes.twins.positions import cache_positions, place_shift
from meshes.weights import dim_sizes, own_dims

STREAM = "stages stream_batch stream_seq embed"
"""The residual stream, between the blocks of a layer."""

TOKENS = "stages batch seq embed"
"""The same inside a block.  Under SEQUENCE_PARALLEL `tp` splits the stream, and not the tokens of a block."""

Stream = Shaped[Array, "stages stream_batch stream_seq embed"]
Block = Shaped[Array, "stages batch seq embed"]
Weights = nnx.State[Any, Any]


@dataclass(frozen=True, eq=False)
class Layout:
    """Places arrays: names of dims in, sharded arrays out.  Style is here, not in the model.

    `pinned` places activations, `weights` leaves them to the partitioner; others: `TypedLayout`, `ExplicitLayout`.
    """

    case: Case
    mesh: AbstractMesh | Mesh

    @property
    def dtype(self) -> jnp.dtype:
        return jnp.dtype(DTYPES[self.case.dtype])

    def num_parts(self, dim: str) -> int:
        """Into how many parts the dim of an array is split."""
        return count_parts(dim, case=self.case)

    def param(self, dims: str) -> nnx.Param[Any]:
        """A weight with these dims, zero until it is loaded; traced, it costs no memory.

        `layers` are stacked in a scan; unrolled, each has its own.
        """
        sizes, dims = dim_sizes(self.case), own_dims(dims, loop=self.case.loop)
        return nnx.Param(jnp.zeros([sizes[dim] for dim in dims.split()], self.dtype), dims=dims)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """The part of the model, from `meshes.scopes`, that collectives in here are attributed to."""
        with enter_scope(name), jax.named_scope(name):
            yield

    def as_global(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step of global arrays, built from the step of those that this layout hands to the model: here the same.

        takes: shapes with shardings; gives: dims.
        """
        return step

    def place(self, x: Shaped[Array, "..."], dims: str) -> Shaped[Array, "..."]:
        """Pin an activation's sharding.  Collectives appear where two pins disagree."""
        check_dims(dims, rank=x.ndim)
        sharding = named_sharding(dims, case=self.case, mesh=self.mesh)
        return jax.lax.with_sharding_constraint(x, sharding) if is_pinned(self.case) else x

    def gather_sequence(self, x: Stream) -> Block:
        """The tokens that a block reads.  Under SEQUENCE_PARALLEL an all-gather over `tp`."""
        return self.place(self.place(x, STREAM), TOKENS)

    def reduce_output(self, x: Block, *, over: str) -> Stream:
        """The sum over the shards of the dim `over`, into the stream: an all-reduce over `tp`.

        Under SEQUENCE_PARALLEL a reduce-scatter.
        """
        return self.place(x, STREAM)

    def lookup(
        self, table: Shaped[Array, "vocab embed"], tokens: Int[Array, "slots batch seq"]
    ) -> Shaped[Array, "slots stages stream_batch stream_seq embed"]:
        """Rows of a table, each on the shard that has its part of the vocabulary: an all-reduce over `tp`.

        Under SEQUENCE_PARALLEL a reduce-scatter.  Looked up on every stage, though the first alone needs it: a lookup
        is cheaper than sending it.
        """
        slots, *rest = tokens.shape
        tokens = jnp.broadcast_to(tokens[:, None], (slots, self.case.mesh.pp, *rest))
        # Ids are below `vocab`; the default mode would fill the rows of others with NaN.
        rows = jnp.take(table, self.place(tokens, "slots stages batch seq"), axis=0, mode="clip")
        return self.place(self.place(rows, f"slots {TOKENS}"), f"slots {STREAM}")

    def positions(self, first: Int[Array, ""], count: int) -> Int[Array, "seq"]:
        """The position of each of `count` tokens, the first's given.  No collective."""
        return first + jnp.arange(count)

    def cache_positions(self) -> Int[Array, "length"]:
        """The position that each place of a cache is for.  No collective."""
        return jnp.asarray(cache_positions(self.case))

    def cache_index(self, position: Int[Array, ""]) -> Int[Array, ""]:
        """The place of a position in a cache; a prompt begins at 0.  No collective."""
        return position if self.case.phase == "prefill" else position + place_shift(self.case)

    def max_over_parts(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The maximum over the parts of a split cache: here x is global, and has it."""
        return x

    def sum_over_parts(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The sum over the parts of a split cache: here x is global, and has it."""
        return x

    def ring(self, block: Callable[..., Array], *, takes: tuple[str, ...], gives: str) -> Callable[..., Array]:
        """`block(rank, hop, *parts)` on each device's own parts of arrays with these dims.

        rank: which part of the sequence this device has.  hop(x): the x of the part before, one collective-permute over
        `cp`, around the ring.  Nothing else is sent in here.
        """

        def local(*parts: Array) -> Array:
            return block(jax.lax.axis_index(RING), self._hop, *parts)

        *in_specs, out_specs = (named_sharding(dims, case=self.case, mesh=self.mesh).spec for dims in (*takes, gives))
        return jax.shard_map(local, mesh=self.mesh, in_specs=tuple(in_specs), out_specs=out_specs, check_vma=False)

    def to_experts(
        self, x: Shaped[Array, "stages _ groups slots embed"]
    ) -> Shaped[Array, "stages experts routed slots embed"]:
        """Each group's slots at every expert, to that expert: one all-to-all over `ep`."""
        return self.place(self.place(x, "stages _ groups _ embed"), "stages experts routed _ embed")

    def from_experts(
        self, x: Shaped[Array, "stages experts routed shards embed"]
    ) -> Shaped[Array, "stages _ groups shards embed"]:
        """The experts' output, back: one all-to-all over `ep`."""
        return self.place(x, "stages _ groups shards embed")

    @property
    def ticks(self) -> Int[Array | np.ndarray, "ticks"]:
        """The ticks of the pipeline, each as its cache slot.

        In the bubble microbatches repeat.  What a stage then writes it has written before, to the same slot; and what
        it writes before its first microbatch comes is overwritten when that slot's own does.  So no tick needs a mask.
        """
        slots, stages = self.case.microbatches, self.case.mesh.pp
        return jnp.asarray(np.arange(slots + stages - 1) % slots)

    @property
    def tick_form(self) -> str:
        """How ticks are written: in a `scan`, or `unrolled`; a single one needs no loop."""
        return self.case.loop if self.case.microbatches + self.case.mesh.pp > 2 else "unrolled"

    def cache_slot(self, tick: Int[Array, ""]) -> Int[Array, ""]:
        """The slot of the cache that every stage uses in that tick."""
        return tick

    def on_first_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` on the first stage, which alone needs it: here on all."""
        return run(x)

    def on_active_stages(self, run: Callable[[Any], Any], carry: Any, *, tick: Int[Array, ""]) -> Any:
        """`run(carry)` on the stages that hold a microbatch in that tick: here on all, whatever they hold."""
        return run(carry)

    def on_last_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` where the last tokens come out of the last stage: here everywhere."""
        return run(x)

    def shift(self, state: Stream, taken: Stream, *, tick: Int[Array, ""]) -> Stream:
        """Each stage's state to the next, `taken` to the first: one collective-permute over `pp`.

        Written as a pad and a slice, which send nothing from the last stage; a roll wraps around.  (One pad that
        adds and removes would do the same, but XLA splits it and forgets whose it was.)
        """
        stages = self.case.mesh.pp
        if stages == 1:
            return self.place(taken, STREAM)
        with self.scope("pipeline.shift"):
            moved = jnp.pad(state, [(1, 0)] + [(0, 0)] * (state.ndim - 1))[:stages]
            first = jnp.arange(stages) == 0
            moved = jnp.where(first[:, None, None, None], taken, self.place(moved, STREAM))
            return self.place(moved, STREAM)

    def last_tokens(
        self, x: Float[Array, "slots stages stream_batch stream_seq embed"]
    ) -> Float[Array, "slots stages batch parts embed"]:
        """The last token of each part of a sequence, of the last tokens of each shard's; whole over `tp`.

        No collective, but under SEQUENCE_PARALLEL: in prefill a masked sum, one all-reduce over `tp`; in decode one
        all-gather, of the sequences.
        """
        with self.scope("head"):
            parts = self.num_parts("parts")
            if (shards := x.shape[3] // parts) > 1:
                x = x.reshape(*x.shape[:3], parts, shards, x.shape[4])
                x = jnp.sum(jnp.where(jnp.arange(shards)[:, None] == shards - 1, x, 0), axis=4)
            return self.place(x, "slots stages batch parts embed")

    def sample(self, logits: Float[Array, "slots stages batch parts vocab"]) -> Int[Array, "slots stages batch parts"]:
        """The greedy choice: two all-gathers over `tp`, of each shard's best value and of its id."""
        with self.scope("sample"):
            return self.place(jnp.argmax(logits, axis=-1).astype(jnp.int32), "slots stages batch parts")

    def collect(self, token_ids: Int[Array, "slots stages batch parts"]) -> Int[Array, "slots batch"]:
        """The last stage's ids of the last part, everywhere: masked sums, an all-reduce over `pp`, one over `cp`."""
        if self.num_parts("stages") * self.num_parts("parts") == 1:
            return token_ids[:, 0, :, 0]
        with self.scope("pipeline.collect"):
            token_ids = self.place(_last_of(token_ids, axis=1), "slots batch parts")
            return self.place(_last_of(token_ids, axis=2), "slots batch")

    def _hop(self, x: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        ranks = self.case.mesh.axes[RING]
        return jax.lax.ppermute(x, RING, [(rank, (rank + 1) % ranks) for rank in range(ranks)])


def _last_of(x: Int[Array, "..."], *, axis: int) -> Int[Array, "..."]:
    """The last row along an axis that a mesh may split: a masked sum, where a slice would send more."""
    size = x.shape[axis]
    if size == 1:
        return jnp.squeeze(x, axis)
    place = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.sum(jnp.where(place == size - 1, x, 0), axis=axis)
