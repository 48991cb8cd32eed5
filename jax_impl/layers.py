"""The parts of a decoder layer.  Their weights are stacked `layers stages …`; called, they see one layer's slice."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from jax_impl.cache import Cache, Keys, read, write
from jax_impl.layout import Layout
from meshes.models import Model
from meshes.rope import inverse_frequencies

Stream = Float[Array, "stages batch seq embed"]
Heads = Float[Array, "stages batch seq heads head_dim"]


class Turn(NamedTuple):
    """What all layers share in one tick."""

    position: Int[Array, ""]
    """Of the first token."""
    slot: Int[Array, ""]
    """Of the cache, the same number on every stage."""
    active: Bool[Array, "stages"]
    """Which stages hold a microbatch, and not the pipeline's bubble."""


def rope(x: Heads, *, position: Int[Array, ""], model: Model) -> Heads:
    """Turn each head's pairs (i, i + head_dim/2) by their positions, in float32.  No collective."""
    places = (position + jnp.arange(x.shape[2])).astype(jnp.float32)
    angles = places[:, None, None] * inverse_frequencies(model)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1).astype(x.dtype)


def causal_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""]) -> Heads:
    """JAX's own attention over the positions up to each query's, which begin at 0.  No collective.

    Its implementation is left to JAX, as its documentation does: `xla` on a TPU, einsums over the heads of a group.
    """
    return jax.vmap(partial(jax.nn.dot_product_attention, is_causal=True))(q, k, v)


def cached_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""]) -> Heads:
    """JAX's own attention over the part of a cache that is filled.  No collective."""
    mask = up_to(position, q=q, k=k)[None, None]
    return jax.vmap(partial(jax.nn.dot_product_attention, mask=mask))(q, k, v)


def grouped_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""]) -> Heads:
    """Attention written out, the heads of a group side by side; softmax in float32.  No collective."""
    stages, batch, seq, heads, head_dim = q.shape
    groups = q.reshape(stages, batch, seq, k.shape[3], -1, head_dim)
    scores = jnp.einsum("zbskgh,zbtkh->zbkgst", groups, k, preferred_element_type=jnp.float32) * head_dim**-0.5
    scores = jnp.where(up_to(position, q=q, k=k), scores, -jnp.inf)
    shares = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("zbkgst,zbtkh->zbskgh", shares, v).reshape(stages, batch, seq, heads, head_dim)


def up_to(position: Int[Array, ""], *, q: Heads, k: Keys) -> Bool[Array, "seq length"]:
    """Which keys each query sees: those at its own position and before."""
    return jnp.arange(k.shape[2]) <= position + jnp.arange(q.shape[2])[:, None]


ATTENTION = {
    ("idiomatic", "prefill"): causal_attention,
    ("idiomatic", "decode"): cached_attention,
    ("einsum", "prefill"): grouped_attention,
    ("einsum", "decode"): grouped_attention,
}
"""By the `attention` and the phase of a `Case`.  JAX's call takes no stages dim: it is mapped over it."""


class Norm(nnx.Module):
    """Root-mean-square norm over `embed`, its statistics in float32.  No collective: `embed` is whole."""

    def __init__(self, layout: Layout, *, dims: str):
        self.layout = layout
        self.scale = layout.param(dims)

    @jax.named_scope("norm")
    def __call__(self, x: Stream) -> Stream:
        wide = x.astype(jnp.float32)
        mean = jnp.mean(jnp.square(wide), axis=-1, keepdims=True)
        normed = (wide * jax.lax.rsqrt(mean + self.layout.case.model.norm_eps)).astype(x.dtype)
        scale = self.scale[...]
        # A layer's scale differs by stage, the final one doesn't: [stages, 1, 1, embed] or [embed].
        return normed * (scale[:, None, None, :] if scale.ndim == 2 else scale)


class Attention(nnx.Module):
    """Grouped-query attention with a cache: heads split in, summed out.

    Under MEGATRON: one all-reduce over `tp`, from `o`.
    """

    def __init__(self, layout: Layout):
        self.layout = layout
        self.q = layout.param("layers stages embed heads head_dim")
        self.k = layout.param("layers stages embed kv_heads head_dim")
        self.v = layout.param("layers stages embed kv_heads head_dim")
        self.o = layout.param("layers stages heads head_dim embed")

    def __call__(self, x: Stream, cache: Cache, *, entry: Int[Array, ""], turn: Turn) -> tuple[Stream, Cache]:
        place = self.layout.place
        with jax.named_scope("layer.attention.qkv"):
            q, k, v = (jnp.einsum("zbsd,zdhk->zbshk", x, weight[...]) for weight in (self.q, self.k, self.v))
            q, k = (rope(each, position=turn.position, model=self.layout.case.model) for each in (q, k))
            q = place(q, "stages batch seq heads head_dim")
            k, v = (place(each, "stages batch seq kv_heads head_dim") for each in (k, v))
        with jax.named_scope("layer.attention.core"):
            keys, values = k, v
            if self.layout.case.phase == "decode":
                keys, values = read(cache, k, v, entry=entry, position=turn.position, layout=self.layout)
            cache = write(cache, k, v, entry=entry, position=turn.position, active=turn.active, layout=self.layout)
            attend = ATTENTION[self.layout.case.attention, self.layout.case.phase]
            mixed = place(attend(q, keys, values, position=turn.position), "stages batch seq heads head_dim")
        with jax.named_scope("layer.attention.out"):
            out = jnp.einsum("zbshk,zhkd->zbsd", mixed, self.o[...])
            return place(out, "stages batch seq embed"), cache


class Mlp(nnx.Module):
    """SwiGLU feed-forward: column-parallel in, row-parallel out.

    Under MEGATRON: one all-reduce over `tp`, from `down`.
    """

    def __init__(self, layout: Layout):
        self.layout = layout
        self.gate = layout.param("layers stages embed ffn")
        self.up = layout.param("layers stages embed ffn")
        self.down = layout.param("layers stages ffn embed")

    def __call__(self, x: Stream) -> Stream:
        with jax.named_scope("layer.mlp.up"):
            gate, up = (jnp.einsum("zbsd,zdf->zbsf", x, weight[...]) for weight in (self.gate, self.up))
            hidden = self.layout.place(jax.nn.silu(gate) * up, "stages batch seq ffn")
        with jax.named_scope("layer.mlp.down"):
            out = jnp.einsum("zbsf,zfd->zbsd", hidden, self.down[...])
            return self.layout.place(out, "stages batch seq embed")


class Layer(nnx.Module):
    """One decoder layer of every stage at once: two all-reduces over `tp`."""

    def __init__(self, layout: Layout):
        self.attention_norm = Norm(layout, dims="layers stages embed")
        self.attention = Attention(layout)
        self.mlp_norm = Norm(layout, dims="layers stages embed")
        self.mlp = Mlp(layout)

    def __call__(self, x: Stream, cache: Cache, *, entry: Int[Array, ""], turn: Turn) -> tuple[Stream, Cache]:
        mixed, cache = self.attention(self.attention_norm(x), cache, entry=entry, turn=turn)
        x = x + mixed
        return x + self.mlp(self.mlp_norm(x)), cache
