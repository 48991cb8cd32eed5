"""A step as shapes and as a program: what lowering needs of a layout, and the model does not."""

from collections.abc import Callable
from typing import Any

import jax
from flax import nnx
from jax.typing import DTypeLike

from jax_impl.sharding.layout import Layout, Weights
from jax_impl.sharding.spec import named_sharding


def abstract_array(layout: Layout, shape: tuple[int, ...], dtype: DTypeLike, dims: str) -> jax.ShapeDtypeStruct:
    """An array without data, with its sharding."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=named_sharding(dims, case=layout.case, mesh=layout.mesh))


def abstract_weights(layout: Layout, weights: Weights) -> Weights:
    """The shapes of a model's weights, with their shardings."""

    def abstract(weight: nnx.Variable[Any]) -> nnx.Variable[Any]:
        return weight.replace(abstract_array(layout, weight.shape, weight.dtype, weight.get_metadata("dims")))

    return jax.tree.map(abstract, weights, is_leaf=lambda each: isinstance(each, nnx.Variable))


def jit_step(layout: Layout, step: Callable[..., Any], *, output_dims: Any) -> jax.stages.Wrapped:
    """The step as a program that overwrites its second argument, the cache, with outputs as declared."""
    outputs = jax.tree.map(lambda dims: named_sharding(dims, case=layout.case, mesh=layout.mesh), output_dims)
    return jax.jit(step, donate_argnums=1, keep_unused=True, out_shardings=outputs)
