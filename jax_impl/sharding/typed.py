"""The layout of style `typed`: a mesh of axes of type Explicit, on which each array's sharding is part of its type.

A pin is a `reshard`, which is the only thing that changes a sharding; an operation whose result could be sharded in
several ways is given an `out_sharding`, and without one JAX refuses the step as it is traced.  XLA decides where a type
can't say what is meant: in `left_open` alone.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jaxtyping import Array, Int, Shaped

from jax_impl.sharding.layout import STREAM, TOKENS, Layout, Stream
from jax_impl.sharding.spec import named_sharding
from meshes.case import Case
from meshes.process.errors import NotOfferedError
from meshes.twins.caches import choose_cache_use
from meshes.twins.layout import check_dims


def check(case: Case) -> None:
    """Raise `NotOfferedError` for what types can't say: one token, whole, written into positions that are split."""
    if case.phase == "decode" and case.mesh.cp > 1 and "slice" in (use := choose_cache_use(case)).__dict__.values():
        raise NotOfferedError("")


class TypedLayout(Layout):
    """The verbs of a layout on arrays whose types say how they are sharded."""

    def as_global(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step under its mesh: the arguments' types say it, arrays that are made in the step need to be told."""

        @wraps(step)
        def run(*arguments: Any) -> Any:
            with jax.sharding.use_abstract_mesh(self.mesh.abstract_mesh):
                return step(*arguments)

        return run

    def place(self, x: Shaped[Array, "..."], dims: str) -> Shaped[Array, "..."]:
        """Reshard: the collectives are those between the two types.  Inside `left_open` a pin, as there are no types."""
        if AxisType.Explicit not in jax.sharding.get_abstract_mesh().axis_types:
            return super().place(x, dims)
        check_dims(dims, rank=x.ndim)
        return jax.sharding.reshard(x, named_sharding(dims, case=self.case, mesh=self.mesh))

    def lookup(
        self, table: Shaped[Array, "vocab embed"], tokens: Int[Array, "slots batch seq"]
    ) -> Shaped[Array, "slots stages stream_batch stream_seq embed"]:
        slots, *rest = tokens.shape
        tokens = jnp.broadcast_to(tokens[:, None], (slots, self.case.mesh.pp, *rest))
        tokens = self.place(tokens, "slots stages batch seq")
        rows = table.at[tokens].get(mode="clip", out_sharding=out_sharding(self, f"slots {TOKENS}"))
        return self.place(rows, f"slots {STREAM}")

    def shift(self, state: Stream, taken: Stream, *, tick: Int[Array, ""]) -> Stream:
        """The pad has a row more than the stages, which no type can split over them."""
        return left_open(super().shift, STREAM, layout=self)(state, taken, tick=tick)


def out_sharding(layout: Layout, dims: str) -> NamedSharding | None:
    """What an operation is told of its result, where types bear shardings; in other styles nothing."""
    return named_sharding(dims, case=layout.case, mesh=layout.mesh) if isinstance(layout, TypedLayout) else None


def left_open(run: Callable[..., Array], gives: str, *, layout: Layout) -> Callable[..., Array]:
    """`run` without types, as XLA's partitioner splits it; its positional arguments lose theirs, its result has one."""
    return jax.sharding.auto_axes(run, out_sharding=named_sharding(gives, case=layout.case, mesh=layout.mesh))
