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
from meshes.twins.caches import CACHE_USES, choose_cache_use
from meshes.twins.layout import check_dims

MASK = "cache-select"
"""The variant that puts a token by a mask."""


def check(case: Case) -> None:
    """Raise `NotOfferedError` where a token is put among split positions in another way than by a mask."""
    if case.phase == "decode" and case.mesh.cp > 1 and choose_cache_use(case) != CACHE_USES[MASK]:
        raise NotOfferedError(
            f"style typed is not offered in decode on mesh {case.plan.name} with a cache that is updated by slices or "
            f"by index: cp splits its positions, and JAX's types place a token among them by a mask alone, as "
            f"--loop scan does: variant {MASK}"
        )


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
        """Change the type: collectives are those between the old one and the new.  In `left_open` a pin."""
        check_dims(dims, rank=x.ndim)
        typed = AxisType.Explicit in jax.sharding.get_abstract_mesh().axis_types
        constrain = jax.sharding.reshard if typed else jax.lax.with_sharding_constraint
        return constrain(x, named_sharding(dims, case=self.case, mesh=self.mesh).spec)

    def lookup(
        self, table: Shaped[Array, "vocab embed"], tokens: Int[Array, "slots batch seq"]
    ) -> Shaped[Array, "slots stages stream_batch stream_seq embed"]:
        slots, *rest = tokens.shape
        tokens = jnp.broadcast_to(tokens[:, None], (slots, self.case.mesh.pp, *rest))
        tokens = self.place(tokens, "slots stages batch seq")
        rows = table.at[tokens].get(mode="clip", out_sharding=out_sharding(self, f"slots {TOKENS}"))
        return self.place(rows, f"slots {STREAM}")

    def shift(self, state: Stream, taken: Stream, *, tick: Int[Array, ""]) -> Stream:
        """Left open: the pad has one row more than there are stages, which no type can split over them."""
        shift = super().shift
        return (left_open(shift, STREAM, layout=self) if self.case.mesh.pp > 1 else shift)(state, taken, tick=tick)


def out_sharding(layout: Layout, dims: str) -> NamedSharding | None:
    """What an operation is told of its result, where types bear shardings; in other styles nothing."""
    return named_sharding(dims, case=layout.case, mesh=layout.mesh) if isinstance(layout, TypedLayout) else None


def left_open(run: Callable[..., Array], gives: str, *, layout: Layout) -> Callable[..., Array]:
    """`run` without types, as XLA's partitioner splits it; its positional arguments lose theirs, its result has one."""
    return jax.sharding.auto_axes(run, out_sharding=named_sharding(gives, case=layout.case, mesh=layout.mesh))
