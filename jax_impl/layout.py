"""Where arrays live: the one file of this twin that touches JAX's sharding API."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Shaped

from meshes.case import Case
from meshes.dims import axes_of
from meshes.errors import MeshError
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


class LayoutError(MeshError):
    """An array that this layout cannot place."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Places arrays: names of dims in, sharded arrays out.  Style is here, not in the model."""

    case: Case
    mesh: AbstractMesh | Mesh

    @classmethod
    def abstract(cls, case: Case) -> "Layout":
        """A mesh of no devices: programs are traced for logical ids 0, 1, …, row-major over the axes."""
        sizes = case.mesh.axes
        return cls(case, AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes)))

    @classmethod
    def on_devices(cls, case: Case) -> "Layout":
        """A mesh of this process's devices, in order of id."""
        sizes = case.mesh.axes
        there, needed = jax.devices(), case.mesh.num_devices
        if len(there) < needed:
            raise LayoutError(f"mesh {case.mesh.name} needs {needed} devices; here are {len(there)}")
        # `jax.make_mesh` would lay TPUs out anew, as the other twin's runtime can't.
        devices = np.array(there[:needed]).reshape(*sizes.values())
        return cls(case, Mesh(devices, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes)))

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
        """Into how many parts the dim is split."""
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

    def place(self, x: Shaped[Array, "..."], dims: str) -> Shaped[Array, "..."]:
        """Pin an activation's sharding.  Collectives appear where two pins disagree."""
        if x.ndim != len(dims.split()):
            raise LayoutError(f"{dims!r} names {len(dims.split())} dims; the array has {x.ndim}")
        return jax.lax.with_sharding_constraint(x, self.sharding(dims))

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

    def shift(
        self, state: Shaped[Array, "stages batch seq embed"], taken: Shaped[Array, "stages batch seq embed"]
    ) -> Shaped[Array, "stages batch seq embed"]:
        """Each stage's state to the next, the first takes what it has of `taken`: one collective-permute over `pp`.

        Written as a pad and a slice, which send nothing from the last stage; a roll wraps around.  (One pad that
        adds and removes would do the same, but XLA splits it and forgets whose it was.)
        """
        stages = self.case.mesh.pp
        if stages == 1:
            return self.place(taken, STREAM)
        with jax.named_scope("pipeline.shift"):
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
        with jax.named_scope("head"):
            parts = self.ways("parts")
            if (shards := x.shape[3] // parts) > 1:
                x = x.reshape(*x.shape[:3], parts, shards, x.shape[4])
                x = jnp.sum(jnp.where(jnp.arange(shards)[:, None] == shards - 1, x, 0), axis=4)
            return self.place(x, "slots stages batch parts embed")

    def sample(self, logits: Float[Array, "slots stages batch parts vocab"]) -> Int[Array, "slots stages batch parts"]:
        """The greedy choice: two all-gathers over `tp`, of each shard's best value and of its id."""
        with jax.named_scope("sample"):
            return self.place(jnp.argmax(logits, axis=-1).astype(jnp.int32), "slots stages batch parts")

    def collect(self, chosen: Int[Array, "slots stages batch parts"]) -> Int[Array, "slots batch"]:
        """The last stage's ids of the last part, everywhere: masked sums, an all-reduce over `pp`, one over `cp`."""
        if self.ways("stages") * self.ways("parts") == 1:
            return chosen[:, 0, :, 0]
        with jax.named_scope("pipeline.collect"):
            chosen = self.place(_last_of(chosen, axis=1), "slots batch parts")
            return self.place(_last_of(chosen, axis=2), "slots batch")


def _last_of(x: Int[Array, "..."], *, axis: int) -> Int[Array, "..."]:
    """The last row along an axis that a mesh may split: a masked sum, where a slice would send more."""
    size = x.shape[axis]
    if size == 1:
        return jnp.squeeze(x, axis)
    place = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.sum(jnp.where(place == size - 1, x, 0), axis=axis)
