"""Attention: whole sequences, keys and values gathered where `cp` splits them, a cache whose positions it splits."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from meshes.case import Case
from meshes.twins.positions import inverse_frequencies
from meshes.variants import find_variant
from torchxla_impl.decoder.cache import KV, Cache, Keys, update
from torchxla_impl.decoder.norm import Norm
from torchxla_impl.sharding.layout import Layout
from torchxla_impl.sharding.spec import constant

Stream = Float[Tensor, "stages batch seq embed"]
Heads = Float[Tensor, "stages batch seq heads head_dim"]

HEADS = "stages batch seq heads head_dim"
KV_HEADS = "stages batch seq kv_heads head_dim"


class StepContext(NamedTuple):
    """The same for all layers of one tick."""

    position: Int[Tensor, ""]
    """Of the first token."""
    slot: Int[Tensor, ""]
    """Of the cache, the same number on every stage."""


def rope(x: Heads, *, position: Int[Tensor, ""], frequencies: Float[Tensor, "pairs"], layout: Layout) -> Heads:
    """Rotate each head's pairs (i, i + head_dim/2) by position, in float32.  No collective."""
    positions = layout.positions(position, x.shape[2]).float()
    angles = positions[:, None, None] * frequencies
    cos, sin = torch.cos(angles), torch.sin(angles)
    left, right = x.float().chunk(2, dim=-1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)


def causal_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""], layout: Layout) -> Heads:
    """PyTorch's own attention over the positions up to each query's, which begin at 0.

    The call of Hugging Face transformers' Llama (5.x, `integrations/sdpa_attention.py`: no mask, `enable_gqa`).  It
    becomes a `bmm` that merges batch and heads: an all-gather over `tp` of q, k and v each, where a device has more
    than one sequence.
    """
    q, k, v = (each.transpose(2, 3) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(2, 3)


def cached_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""], layout: Layout) -> Heads:
    """PyTorch's own attention over the part of a cache that is filled.

    The call of Hugging Face transformers' Llama (as above: with a mask and one query, the heads of a group take the
    place of the queries).  As above, too: an all-gather over `tp` of q, and of all keys and values in the cache.  Where
    `cp` splits the positions it merges the softmax, as `grouped_attention`, and asks besides whether a row sees any.
    """
    mask = causal_mask(position, q=q, k=k, layout=layout)
    q, k, v = (each.transpose(2, 3) for each in (q, k, v))
    # [stages batch kv_heads group head_dim]: with one query the heads of a group take the place of the queries.
    packed = q.reshape(*k.shape[:3], -1, k.shape[4])
    return F.scaled_dot_product_attention(packed, k, v, attn_mask=mask).reshape(q.shape).transpose(2, 3)


def grouped_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""], layout: Layout) -> Heads:
    """Attention written out, the heads of a group side by side; softmax in float32.

    No collective; where `cp` splits the positions of a cache three all-reduces over it: of the highest score, of the
    sum, and of the weighted values.
    """
    # [stages batch seq kv_heads group head_dim]; scores: [stages batch kv_heads group seq length]
    groups = q.unflatten(3, (k.shape[3], -1))
    scores = torch.einsum("zbskgh,zbtkh->zbkgst", groups, k).float() * q.shape[-1] ** -0.5
    scores = torch.where(causal_mask(position, q=q, k=k, layout=layout), scores, -torch.inf)
    probs = torch.softmax(scores, dim=-1).to(v.dtype)
    return torch.einsum("zbkgst,zbtkh->zbskgh", probs, v).reshape(q.shape)


def gathered_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""], layout: Layout) -> Heads:
    """Causal attention over a sequence that `cp` splits: each part's queries over all keys and values.

    Two all-gathers over `cp`, of keys and of values, as Llama 3 was trained (arXiv 2407.21783, section 3.3.2): a
    program that GSPMD partitions cannot write a ring.  Beside them what the attention itself costs.
    """
    k, v = (layout.place(each, KV_HEADS.replace("seq", "_")) for each in (k, v))
    return choose_formulation(layout.case)(q, k, v, position=position, layout=layout)


def grouped_sdpa(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""], layout: Layout) -> Heads:
    """PyTorch's own attention, the queries of a group side by side: K and V are not repeated.

    In prefill it gathers what `causal_attention` does, with no copies of K and V; in decode it is `cached_attention`.
    """
    attn_out = _sdpa(q, k, v, position=position, layout=layout, order=(0, 1, 3, 2, 4))
    return attn_out.permute(0, 1, 3, 2, 4)


def heads_first_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""], layout: Layout) -> Heads:
    """`grouped_sdpa`, heads before a device's sequences: of the dims that `bmm` merges only the outermost are split.

    No collective.
    """
    ways = layout.num_parts("batch")
    # [stages ways batch/ways seq heads head_dim]
    cut = (each.unflatten(1, (ways, -1)) for each in (q, k, v))
    attn_out = _sdpa(*cut, position=position, layout=layout, order=(0, 1, 4, 2, 3, 5))
    return attn_out.permute(0, 1, 3, 4, 2, 5).flatten(1, 2)


def _sdpa(
    q: Tensor, k: Tensor, v: Tensor, *, position: Int[Tensor, ""], layout: Layout, order: tuple[int, ...]
) -> Tensor:
    """PyTorch's attention of `[… seq heads head_dim]` with the dims in this order, the sequence next to last.

    The queries of a group are side by side.
    """
    groups, length = q.shape[-2] // k.shape[-2], q.shape[-3]
    mask = causal_mask(position, q=q.flatten(1, -4), k=k.flatten(1, -4), layout=layout).repeat(groups, 1)
    heads = order.index(q.ndim - 2)
    q, k, v = (each.permute(order) for each in (q, k, v))
    packed = q.unflatten(heads, (-1, groups)).movedim(heads + 1, -3).flatten(-3, -2)
    attn_out = F.scaled_dot_product_attention(packed, k, v, attn_mask=mask)
    return attn_out.unflatten(-2, (groups, length)).movedim(-3, heads + 1).flatten(heads, heads + 1)


def per_sequence_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""], layout: Layout) -> Heads:
    """PyTorch's own attention for one sequence of each device at a time, so that `bmm` has no batch to merge.

    No collective; as many calls as a device has sequences.
    """
    ways, call = layout.num_parts("batch"), ATTENTION["idiomatic", layout.case.phase]
    cut = [each.unflatten(1, (ways, -1)) for each in (q, k, v)]
    sequences = zip(*(each.unbind(2) for each in cut), strict=True)
    return torch.stack([call(*each, position=position, layout=layout) for each in sequences], 2).flatten(1, 2)


def causal_mask(position: Int[Tensor, ""], *, q: Heads, k: Keys, layout: Layout) -> Bool[Tensor, "seq length"]:
    """Which keys each query sees: those at its own position and before."""
    case, (seq, length) = layout.case, (torch.arange(each.shape[2], device=each.device) for each in (q, k))
    positions = layout.cache_positions() if case.phase == "decode" and case.mesh.cp > 1 else length
    return positions <= position + seq[:, None]


ATTENTION = {
    ("idiomatic", "prefill"): causal_attention,
    ("idiomatic", "decode"): cached_attention,
    ("einsum", "prefill"): grouped_attention,
    ("einsum", "decode"): grouped_attention,
}
"""By the `attention` and the phase of a `Case`."""

WRITTEN_AS = {
    "attention-heads-first": heads_first_attention,
    "attention-kv-grouped": grouped_sdpa,
    "attention-per-sequence": per_sequence_attention,
}
"""By the variant of a `Case`."""


def choose_formulation(case: Case) -> Callable[..., Heads]:
    """How the case writes attention over whole sequences."""
    return WRITTEN_AS.get(find_variant(case, site="attention")) or ATTENTION[case.attention, case.phase]


def choose_attention(case: Case) -> Callable[..., Heads]:
    """How the case attends: over a split prompt with all keys and values, in either formulation."""
    split = case.phase == "prefill" and case.mesh.cp > 1
    return gathered_attention if split else choose_formulation(case)


class Attention(nn.Module):
    """Grouped-query attention with a cache: heads split in, summed out.

    Under MEGATRON: one all-reduce over `tp`, from `o`.  Under SEQUENCE_PARALLEL: an all-gather before `q`, `k` and `v`
    and a reduce-scatter after `o`.  With `cp`: in prefill two all-gathers, in decode three small all-reduces.
    """

    def __init__(self, layout: Layout):
        super().__init__()
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
        self.frequencies = constant(inverse_frequencies(model))

    def forward(self, x: Stream, cache: Cache, *, entry: Int[Tensor, ""], context: StepContext) -> tuple[Stream, Cache]:
        layout, case = self.layout, self.layout.case
        with layout.scope("layer.attention.qkv"):
            q, k, v = self.project(layout.gather_sequence(x), position=context.position)
        with layout.scope("layer.attention.core"):
            keys, values, cache = update(cache, k, v, entry=entry, position=context.position, layout=layout)
            attn_out = choose_attention(case)(q, keys, values, position=context.position, layout=layout)
            attn_out = layout.place(attn_out, HEADS)
        with layout.scope("layer.attention.out"):
            return layout.reduce_output(torch.einsum("zbshk,zhkd->zbsd", attn_out, self.o), over="heads"), cache

    def project(self, x: Stream, *, position: Int[Tensor, ""]) -> tuple[Heads, KV, KV]:
        """Queries, keys and values: with their biases, normed where the model does, queries and keys turned."""
        layout = self.layout
        q, k, v = (torch.einsum("zbsd,zhdk->zbshk", x, weight) for weight in (self.q, self.k, self.v))
        biases = [bias for bias in (self.q_bias, self.k_bias, self.v_bias) if bias is not None]
        if biases:
            q, k, v = (each + bias[:, None, None] for each, bias in zip((q, k, v), biases, strict=True))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = (rope(each, position=position, frequencies=self.frequencies, layout=layout) for each in (q, k))
        return layout.place(q, HEADS), layout.place(k, KV_HEADS), layout.place(v, KV_HEADS)
