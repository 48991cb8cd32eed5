"""The root-mean-square norm: of the stream, and of the heads of queries and keys."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from jax_impl.sharding.layout import Layout


class Norm(nnx.Module):
    """Root-mean-square norm over the last dim, its statistics in float32.  No collective: that dim is whole."""

    def __init__(self, layout: Layout, *, dims: str):
        self.layout = layout
        self.scale = layout.param(dims)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        with self.layout.scope("norm"):
            wide = x.astype(jnp.float32)
            mean = jnp.mean(jnp.square(wide), axis=-1, keepdims=True)
            normed = (wide * jax.lax.rsqrt(mean + self.layout.case.model.norm_eps)).astype(x.dtype)
            scale = self.scale[...]
            # A layer's scale differs by stage, the final one doesn't: [stages, 1, …, width] or [width].
            return normed * (jnp.expand_dims(scale, range(1, x.ndim - 1)) if scale.ndim == 2 else scale)
