"""Attention: whole sequences, a ring where `cp` splits them, a cache whose positions it splits."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from jax_impl.decoder.cache import KV, Cache, Keys, update
from jax_impl.decoder.norm import Norm
from jax_impl.sharding.layout import STREAM, Layout
from jax_impl.sharding.typed import left_open, out_sharding
from meshes.case import Case
from meshes.twins.positions import inverse_frequencies
from meshes.variants import check_offered

Stream = Float[Array, "stages batch seq embed"]
Heads = Float[Array, "stages batch seq heads head_dim"]

HEADS = "stages batch seq heads head_dim"
KV_HEADS = "stages batch seq kv_heads head_dim"

LOWEST = -1e30
"""The score of a masked key.  Finite: all keys of a later part are masked, and -inf - (-inf) would be NaN."""


class StepContext(NamedTuple):
    """The same for all layers of one tick."""

    position: Int[Array, ""]
    """Of the first token."""
    slot: Int[Array, ""]
    """Of the cache, the same number on every stage."""


def rope(x: Heads, *, position: Int[Array, ""], frequencies: Float[np.ndarray, "pairs"], layout: Layout) -> Heads:
    """Rotate each head's pairs (i, i + head_dim/2) by position, in float32.  No collective."""
    positions = layout.positions(position, x.shape[2]).astype(jnp.float32)
    angles = positions[:, None, None] * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1).astype(x.dtype)


def causal_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""], layout: Layout) -> Heads:
    """JAX's own attention over the positions up to each query's, which begin at 0.  No collective.

    Its implementation is left to JAX, as its documentation does: `xla` on a TPU, einsums over the heads of a group.
    """
    return jax.vmap(partial(jax.nn.dot_product_attention, is_causal=True))(q, k, v)


def cached_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""], layout: Layout) -> Heads:
    """JAX's own attention over the part of a cache that is filled.

    No collective; where `cp` splits the positions three all-reduces over it: of the highest score, of the sum, and of
    the weighted values.
    """
    mask = causal_mask(position, q=q, k=k, layout=layout)[None, None]
    return jax.vmap(partial(jax.nn.dot_product_attention, mask=mask))(q, k, v)


def grouped_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""], layout: Layout) -> Heads:
    """Attention written out, the heads of a group side by side; softmax in float32.  Sends as `cached_attention`."""
    scores = jnp.where(causal_mask(position, q=q, k=k, layout=layout), _scores(q, k), -jnp.inf)
    probs = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("zbkgst,zbtkh->zbskgh", probs, v).reshape(q.shape)


def ring_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""], layout: Layout) -> Heads:
    """Causal attention over a sequence that `cp` splits, the positions of which begin at 0 (arXiv 2310.01889).

    Keys and values go around the ring while each part's queries meet them: cp − 1 collective-permutes over `cp` of
    each; the softmax is merged as they come, in float32.
    """
    return layout.ring(partial(_ring, layout.case.mesh.cp), takes=(HEADS, KV_HEADS, KV_HEADS), gives=HEADS)(q, k, v)


def _ring(
    ranks: int, rank: Int[Array, ""], hop: Callable[[Keys], Keys], q: Heads, k: Keys, v: Keys
) -> Float[Array, "stages batch seq heads head_dim"]:
    """One device's part of `ring_attention`; q, k and v are those of its part of the sequence."""
    steps = jnp.arange(q.shape[2])
    # highest, total: [stages batch kv_heads group seq]; attn_out: [… head_dim].
    highest = jnp.full((*q.shape[:2], k.shape[3], q.shape[3] // k.shape[3], q.shape[2]), LOWEST)
    total, attn_out = jnp.zeros(highest.shape), jnp.zeros((*highest.shape, q.shape[4]))
    for step in range(ranks):
        if step:
            k, v = hop(k), hop(v)
        source = (rank - step) % ranks
        seen = source * len(steps) + steps <= rank * len(steps) + steps[:, None]
        scores = jnp.where(seen, _scores(q, k), LOWEST)
        top = jnp.maximum(highest, jnp.max(scores, axis=-1))
        probs, kept = jnp.exp(scores - top[..., None]), jnp.exp(highest - top)
        here = jnp.einsum("zbkgst,zbtkh->zbkgsh", probs.astype(v.dtype), v, preferred_element_type=jnp.float32)
        total, attn_out = total * kept + jnp.sum(probs, axis=-1), attn_out * kept[..., None] + here
        highest = top
    return jnp.einsum("zbkgsh->zbskgh", attn_out / total[..., None]).reshape(q.shape).astype(q.dtype)


def merged_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""], layout: Layout) -> Heads:
    """Attention over a cache of which each device has the positions of its part; softmax in float32.

    Its parts are merged: three all-reduces over `cp`, of the highest score, of the sum, and of the weighted values.
    """
    # scores, probs: [stages batch kv_heads group seq length]; attn_out: [stages batch kv_heads group seq head_dim].
    scores = jnp.where(causal_mask(position, q=q, k=k, layout=layout), _scores(q, k), LOWEST)
    probs = jnp.exp(scores - layout.max_over_parts(jnp.max(scores, axis=-1))[..., None])
    attn_out = jnp.einsum("zbkgst,zbtkh->zbkgsh", probs.astype(v.dtype), v, preferred_element_type=jnp.float32)
    total, attn_out = layout.sum_over_parts(jnp.sum(probs, axis=-1)), layout.sum_over_parts(attn_out)
    return jnp.einsum("zbkgsh->zbskgh", attn_out / total[..., None]).reshape(q.shape).astype(q.dtype)


def _scores(q: Heads, k: Keys) -> Float[Array, "stages batch kv_heads group seq length"]:
    """Scaled, in float32, the query heads of a KV head side by side."""
    groups = q.reshape(*q.shape[:3], k.shape[3], -1, q.shape[4])
    return jnp.einsum("zbskgh,zbtkh->zbkgst", groups, k, preferred_element_type=jnp.float32) * q.shape[4] ** -0.5


def causal_mask(position: Int[Array, ""], *, q: Heads, k: Keys, layout: Layout) -> Bool[Array, "seq length"]:
    """Which keys each query sees: those at its own position and before."""
    positions = layout.cache_positions() if layout.case.phase == "decode" else jnp.arange(k.shape[2])
    return positions <= layout.positions(position, q.shape[2])[:, None]


ATTENTION = {
    ("idiomatic", "prefill"): causal_attention,
    ("idiomatic", "decode"): cached_attention,
    ("einsum", "prefill"): grouped_attention,
    ("einsum", "decode"): grouped_attention,
}
"""By the `attention` and the phase of a `Case`.  JAX's call takes no stages dim: it is mapped over it."""


def open_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Array, ""], layout: Layout) -> Heads:
    """Attention over a split cache whose sums are left to XLA: JAX's own call takes no `out_sharding` for them."""

    def attend(q: Heads, k: Keys, v: Keys, position: Int[Array, ""]) -> Heads:
        return ATTENTION[layout.case.attention, "decode"](q, k, v, position=position, layout=layout)

    return left_open(attend, HEADS, layout=layout)(q, k, v, position)


SPLIT = {
    ("pinned", "prefill"): ring_attention,
    ("typed", "prefill"): ring_attention,
    ("explicit", "prefill"): ring_attention,
    ("explicit", "decode"): merged_attention,
    ("typed", "decode"): open_attention,
}
"""By the style and the phase, where `cp` splits the sequence: else it is attended to as if whole, and XLA splits it."""


def choose_attention(case: Case) -> Callable[..., Heads]:
    """By `SPLIT` where `cp` splits the sequence and the style is there, else by the case's formulation and phase."""
    check_offered(case, arm="jax")
    split = SPLIT.get((case.style, case.phase)) if case.mesh.cp > 1 else None
    return split or ATTENTION[case.attention, case.phase]


class Attention(nnx.Module):
    """Grouped-query attention with a cache: heads split in, summed out.

    Under MEGATRON: one all-reduce over `tp`, from `o`.  Under SEQUENCE_PARALLEL: an all-gather before `q`, `k` and `v`
    and a reduce-scatter after `o`.  With `cp`: in prefill 2(cp − 1) permutes, in decode three small all-reduces.
    """

    def __init__(self, layout: Layout):
        model = layout.case.model
        self.layout = layout
        self.q = layout.param("layers stages heads embed head_dim")
        self.k = layout.param("layers stages kv_heads embed head_dim")
        self.v = layout.param("layers stages kv_heads embed head_dim")
        self.q_bias = layout.param("layers stages heads head_dim") if model.qkv_bias else None
        self.k_bias = layout.param("layers stages kv_heads head_dim") if model.qkv_bias else None
        self.v_bias = layout.param("layers stages kv_heads head_dim") if model.qkv_bias else None
        self.q_norm = Norm(layout, dims="layers stages head_dim") if model.qk_norm else None
        self.k_norm = Norm(layout, dims="layers stages head_dim") if model.qk_norm else None
        self.o = layout.param("layers stages heads head_dim embed")

    def __call__(self, x: Stream, cache: Cache, *, entry: Int[Array, ""], context: StepContext) -> tuple[Stream, Cache]:
        layout, case = self.layout, self.layout.case
        with layout.scope("layer.attention.qkv"):
            q, k, v = self.project(layout.gather_sequence(x), position=context.position)
        with layout.scope("layer.attention.core"):
            keys, values, cache = update(cache, k, v, entry=entry, position=context.position, layout=layout)
            attn_out = choose_attention(case)(q, keys, values, position=context.position, layout=layout)
            attn_out = layout.place(attn_out, HEADS)
        with layout.scope("layer.attention.out"):
            out = jnp.einsum("zbshk,zhkd->zbsd", attn_out, self.o[...], out_sharding=out_sharding(layout, STREAM))
            return layout.reduce_output(out, over="heads"), cache

    def project(self, x: Stream, *, position: Int[Array, ""]) -> tuple[Heads, KV, KV]:
        """Queries, keys and values: with their biases, normed where the model does, queries and keys turned."""
        layout = self.layout
        q, k, v = (jnp.einsum("zbsd,zhdk->zbshk", x, weight[...]) for weight in (self.q, self.k, self.v))
        biases = [bias for bias in (self.q_bias, self.k_bias, self.v_bias) if bias is not None]
        if biases:
            q, k, v = (each + bias[...][:, None, None] for each, bias in zip((q, k, v), biases, strict=True))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = (
            rope(each, position=position, frequencies=inverse_frequencies(layout.case.model), layout=layout)
            for each in (q, k)
        )
        return layout.place(q, HEADS), layout.place(k, KV_HEADS), layout.place(v, KV_HEADS)
