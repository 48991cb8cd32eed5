"""Where arrays live: the one file of this twin that touches JAX's sharding API."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Shaped

from meshes.case import Case
from meshes.dims import axes_of
from meshes.positions import held, place_shift
from meshes.process.errors import MeshError
from meshes.variants import pinned
from meshes.weights import dim_sizes

DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32}

MAX_RANK = 5
"""PyTorch/XLA cannot shard a tensor of more dims; the twins pin the same tensors, so neither does."""


RING = "cp"
"""The axis around which the keys and values of a split sequence go."""

STREAM = "stages stream_batch stream_seq embed"
"""The residual stream, between the blocks of a layer."""

TOKENS = "stages batch seq embed"
"""The same inside a block.  Under SEQUENCE_PARALLEL `tp` splits the stream, and not the tokens of a block."""


Stream = Shaped[Array, "stages stream_batch stream_seq embed"]
Block = Shaped[Array, "stages batch seq embed"]


class LayoutError(MeshError):
    """An array that this layout cannot place."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Places arrays: names of dims in, sharded arrays out.  Style is here, not in the model.

    `pinned` places activations, `weights` leaves them to the partitioner; of `explicit` see `ExplicitLayout`.
    """

    case: Case
    mesh: AbstractMesh | Mesh
    _scopes: list[str] = field(default_factory=list, repr=False)

    @property
    def dtype(self) -> jnp.dtype:
        return jnp.dtype(DTYPES[self.case.dtype])

    def sharding(self, dims: str) -> NamedSharding:
        """The sharding of an array with these dims, `_` for one that is never split."""
        axes = axes_of(dims, rules=self.case.rules)
        if len(axes) > MAX_RANK:
            raise LayoutError(f"{dims!r} names {len(axes)} dims; an array is sharded over at most {MAX_RANK}")
        return NamedSharding(self.mesh, PartitionSpec(*axes))

    def ways(self, dim: str) -> int:
        """Into how many parts the dim of an array is split."""
        axes = (self.case.rules[dim] or "").split(",")
        return prod(self.case.mesh.axes[axis] for axis in axes if axis)

    def param(self, dims: str) -> nnx.Param:
        """A weight with these dims, zero until it is loaded; traced, it costs no memory."""
        sizes = dim_sizes(self.case)
        return nnx.Param(jnp.zeros([sizes[dim] for dim in dims.split()], self.dtype), dims=dims)

    def shape(self, shape: tuple[int, ...], dtype: DTypeLike, dims: str) -> jax.ShapeDtypeStruct:
        """An array that isn't there yet, with its sharding."""
        return jax.ShapeDtypeStruct(shape, dtype, sharding=self.sharding(dims))

    def shard(self, weights: nnx.State) -> nnx.State:
        """The shapes of a model's weights, with their shardings."""

        def one(weight: nnx.Variable) -> nnx.Variable:
            return weight.replace(self.shape(weight.shape, weight.dtype, weight.get_metadata("dims")))

        return jax.tree.map(one, weights, is_leaf=lambda each: isinstance(each, nnx.Variable))

    def jit(self, step: Callable[..., Any], *, output_dims: Any) -> jax.stages.Wrapped:
        """The step as a program that overwrites its second argument, the cache, with outputs as declared."""
        outputs = jax.tree.map(self.sharding, output_dims)
        return jax.jit(step, donate_argnums=1, keep_unused=True, out_shardings=outputs)

    def whole(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step of whole arrays, given one of what this layout hands to the model: here the same.

        takes: shapes with shardings; gives: dims.
        """
        return step

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """The part of the model, of the closed list, that asks for what is sent in here."""
        self._scopes.append(name)
        try:
            with jax.named_scope(name):
                yield
        finally:
            self._scopes.pop()

    @property
    def pins(self) -> bool:
        """Whether an activation is pinned here, in the innermost scope."""
        return pinned(self.case, self._scopes[-1] if self._scopes else "")

    def place(self, x: Shaped[Array, "..."], dims: str) -> Shaped[Array, "..."]:
        """Pin an activation's sharding.  Collectives appear where two pins disagree."""
        if x.ndim != len(dims.split()):
            raise LayoutError(f"{dims!r} names {len(dims.split())} dims; the array has {x.ndim}")
        return jax.lax.with_sharding_constraint(x, self.sharding(dims)) if self.pins else x

    def tokens(self, x: Stream) -> Block:
        """The tokens that a block reads.  Under SEQUENCE_PARALLEL an all-gather over `tp`."""
        return self.place(self.place(x, STREAM), TOKENS)

    def summed(self, x: Block, *, over: str) -> Stream:
        """What the shards of the dim `over` add to the stream: an all-reduce over `tp`.

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
        found = jnp.take(table, self.place(tokens, "slots stages batch seq"), axis=0, mode="clip")
        return self.place(self.place(found, f"slots {TOKENS}"), f"slots {STREAM}")

    def positions(self, first: Int[Array, ""], count: int) -> Int[Array, "seq"]:
        """The position of each of the tokens of an array, that of the first of all given.  No collective."""
        return first + jnp.arange(count)

    def held(self) -> Int[Array, "length"]:
        """The position that each place of a cache is for.  No collective."""
        return jnp.asarray(held(self.case))

    def cache_place(self, position: Int[Array, ""]) -> Int[Array, ""]:
        """Where a token's keys and values stand in a cache; a prompt's first are the first.  No collective."""
        return position if self.case.phase == "prefill" else position + place_shift(self.case)

    def to_experts(
        self, x: Shaped[Array, "stages _ groups slots embed"]
    ) -> Shaped[Array, "stages experts routed slots embed"]:
        """Each group's places at every expert, to that expert: one all-to-all over `ep`."""
        return self.place(self.place(x, "stages _ groups _ embed"), "stages experts routed _ embed")

    def from_experts(
        self, x: Shaped[Array, "stages experts routed shards embed"]
    ) -> Shaped[Array, "stages _ groups shards embed"]:
        """What the experts made of them, back: one all-to-all over `ep`."""
        return self.place(x, "stages _ groups shards embed")

    def local(self, block: Callable[..., Any], *, takes: tuple[str, ...], gives: str) -> Callable[..., Any]:
        """`block` on each device's own parts of arrays with these dims; in it nothing is sent but by `hop`."""
        return jax.shard_map(
            block,
            mesh=self.mesh,
            in_specs=tuple(self.sharding(dims).spec for dims in takes),
            out_specs=self.sharding(gives).spec,
            check_vma=False,
        )

    def rank(self) -> Int[Array, ""]:
        """Which part of the sequence this device has, in a `local` block."""
        return jax.lax.axis_index(RING)

    def hop(self, x: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        """What the part before this one has, in a `local` block: one collective-permute over `cp`, around the ring."""
        ranks = self.case.mesh.axes[RING]
        return jax.lax.ppermute(x, RING, [(rank, (rank + 1) % ranks) for rank in range(ranks)])

    @property
    def ticks(self) -> Int[Array, "ticks"]:
        """Of the pipeline, each told by its cache slot.

        Microbatches come again in the bubble.  What a stage then keeps it has kept before, in the same slot; and
        what it keeps before the first one comes is overwritten when that slot's own does.  So no tick needs a mask.
        """
        slots, stages = self.case.microbatches, self.case.mesh.pp
        return jnp.asarray(np.arange(slots + stages - 1) % slots)

    @property
    def tick_form(self) -> str:
        """How ticks are written: in a `scan`, or `unrolled`."""
        return self.case.loop

    def slot(self, tick: Int[Array, ""]) -> Int[Array, ""]:
        """Of the cache, in that tick."""
        return tick

    def active(self, run: Callable[[Any], Any], carry: Any, *, tick: Int[Array, ""]) -> Any:
        """`run(carry)` on the stages that hold a microbatch in that tick: here on all, whatever they hold."""
        return run(carry)

    def at_start(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` on the first stage, which alone needs it: here on all."""
        return run(x)

    def at_end(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)` where the last tokens come out of the last stage: here everywhere."""
        return run(x)

    def shift(self, state: Stream, taken: Stream, *, tick: Any = 0) -> Stream:
        """Each stage's state to the next, the first takes what it has of `taken`: one collective-permute over `pp`.

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

    def last(
        self, x: Float[Array, "slots stages stream_batch stream_seq embed"]
    ) -> Float[Array, "slots stages batch parts embed"]:
        """The last token of each part of a sequence, of the last tokens of each shard's; whole over `tp`.

        No collective, but under SEQUENCE_PARALLEL: in prefill a masked sum, one all-reduce over `tp`; in decode one
        all-gather, of the sequences.
        """
        with self.scope("head"):
            parts = self.ways("parts")
            if (shards := x.shape[3] // parts) > 1:
                x = x.reshape(*x.shape[:3], parts, shards, x.shape[4])
                x = jnp.sum(jnp.where(jnp.arange(shards)[:, None] == shards - 1, x, 0), axis=4)
            return self.place(x, "slots stages batch parts embed")

    def sample(self, logits: Float[Array, "slots stages batch parts vocab"]) -> Int[Array, "slots stages batch parts"]:
        """The greedy choice: two all-gathers over `tp`, of each shard's best value and of its id."""
        with self.scope("sample"):
            return self.place(jnp.argmax(logits, axis=-1).astype(jnp.int32), "slots stages batch parts")

    def collect(self, chosen: Int[Array, "slots stages batch parts"]) -> Int[Array, "slots batch"]:
        """The last stage's ids of the last part, everywhere: masked sums, an all-reduce over `pp`, one over `cp`."""
        if self.ways("stages") * self.ways("parts") == 1:
            return chosen[:, 0, :, 0]
        with self.scope("pipeline.collect"):
            chosen = self.place(_last_of(chosen, axis=1), "slots batch parts")
            return self.place(_last_of(chosen, axis=2), "slots batch")


def _last_of(x: Int[Array, "..."], *, axis: int) -> Int[Array, "..."]:
    """The last row along an axis that a mesh may split: a masked sum, where a slice would send more."""
    size = x.shape[axis]
    if size == 1:
        return jnp.squeeze(x, axis)
    place = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.sum(jnp.where(place == size - 1, x, 0), axis=axis)
