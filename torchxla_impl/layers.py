"""The parts of a decoder layer.  Their weights are stacked `layers stages …`; called, they see one layer's slice."""

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
import torch_xla.debug.profiler as xp
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from meshes.rope import inverse_frequencies
from torchxla_impl.cache import Cache, Keys, read, write
from torchxla_impl.layout import Layout

Stream = Float[Tensor, "stages batch seq embed"]
Heads = Float[Tensor, "stages batch seq heads head_dim"]


class Turn(NamedTuple):
    """What all layers share in one tick."""

    position: Int[Tensor, ""]
    """Of the first token."""
    slot: Int[Tensor, ""]
    """Of the cache, the same number on every stage."""
    active: Bool[Tensor, "stages"]
    """Which stages hold a microbatch, and not the pipeline's bubble."""


def rope(x: Heads, *, position: Int[Tensor, ""], frequencies: Float[Tensor, "pairs"]) -> Heads:
    """Turn each head's pairs (i, i + head_dim/2) by their positions, in float32.  No collective."""
    places = (position + torch.arange(x.shape[2], device=x.device)).float()
    angles = places[:, None, None] * frequencies
    cos, sin = torch.cos(angles), torch.sin(angles)
    left, right = x.float().chunk(2, dim=-1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)


def causal_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""]) -> Heads:
    """PyTorch's own attention over the positions up to each query's, which begin at 0.

    The call of Hugging Face transformers' Llama (5.x, `integrations/sdpa_attention.py`: no mask, `enable_gqa`).  It
    becomes a `bmm` that merges batch and heads: an all-gather over `tp` of q, k and v each, where a device has more
    than one sequence.
    """
    q, k, v = (each.transpose(2, 3) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(2, 3)


def cached_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""]) -> Heads:
    """PyTorch's own attention over the part of a cache that is filled.

    The call of Hugging Face transformers' Llama (as above: with a mask and one query, the heads of a group take the
    place of the queries).  As above, too: an all-gather over `tp` of q, and of all keys and values in the cache.
    """
    mask = up_to(position, q=q, k=k)
    q, k, v = (each.transpose(2, 3) for each in (q, k, v))
    packed = q.reshape(*k.shape[:3], -1, k.shape[4])
    return F.scaled_dot_product_attention(packed, k, v, attn_mask=mask).reshape(q.shape).transpose(2, 3)


def grouped_attention(q: Heads, k: Keys, v: Keys, *, position: Int[Tensor, ""]) -> Heads:
    """Attention written out, the heads of a group side by side; softmax in float32.  No collective."""
    stages, batch, seq, heads, head_dim = q.shape
    groups = q.reshape(stages, batch, seq, k.shape[3], -1, head_dim)
    scores = torch.einsum("zbskgh,zbtkh->zbkgst", groups, k).float() * head_dim**-0.5
    scores = torch.where(up_to(position, q=q, k=k), scores, -torch.inf)
    shares = torch.softmax(scores, dim=-1).to(v.dtype)
    return torch.einsum("zbkgst,zbtkh->zbskgh", shares, v).reshape(stages, batch, seq, heads, head_dim)


def up_to(position: Int[Tensor, ""], *, q: Heads, k: Keys) -> Bool[Tensor, "seq length"]:
    """Which keys each query sees: those at its own position and before."""
    seq, length = (torch.arange(each.shape[2], device=each.device) for each in (q, k))
    return length <= position + seq[:, None]


ATTENTION = {
    ("idiomatic", "prefill"): causal_attention,
    ("idiomatic", "decode"): cached_attention,
    ("einsum", "prefill"): grouped_attention,
    ("einsum", "decode"): grouped_attention,
}
"""By the `attention` and the phase of a `Case`."""


class Norm(nn.Module):
    """Root-mean-square norm over `embed`, its statistics in float32.  No collective: `embed` is whole."""

    def __init__(self, layout: Layout, *, dims: str):
        super().__init__()
        self.layout = layout
        self.scale = layout.param(dims)

    def forward(self, x: Stream) -> Stream:
        with xp.Trace("norm"):
            wide = x.float()
            mean = wide.square().mean(-1, keepdim=True)
            normed = (wide * torch.rsqrt(mean + self.layout.case.model.norm_eps)).to(x.dtype)
            # A layer's scale differs by stage, the final one doesn't: [stages, 1, 1, embed] or [embed].
            return normed * (self.scale[:, None, None, :] if self.scale.ndim == 2 else self.scale)


class Attention(nn.Module):
    """Grouped-query attention with a cache: heads split in, summed out.

    Under MEGATRON: one all-reduce over `tp`, from `o`.
    """

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.q = layout.param("layers stages embed heads head_dim")
        self.k = layout.param("layers stages embed kv_heads head_dim")
        self.v = layout.param("layers stages embed kv_heads head_dim")
        self.o = layout.param("layers stages heads head_dim embed")
        self.frequencies = layout.constant(inverse_frequencies(layout.case.model))

    def forward(self, x: Stream, cache: Cache, *, entry: Int[Tensor, ""], turn: Turn) -> tuple[Stream, Cache]:
        place = self.layout.place
        with xp.Trace("layer.attention.qkv"):
            q, k, v = (torch.einsum("zbsd,zdhk->zbshk", x, weight) for weight in (self.q, self.k, self.v))
            q, k = (rope(each, position=turn.position, frequencies=self.frequencies) for each in (q, k))
            q = place(q, "stages batch seq heads head_dim")
            k, v = (place(each, "stages batch seq kv_heads head_dim") for each in (k, v))
        with xp.Trace("layer.attention.core"):
            keys, values = k, v
            if self.layout.case.phase == "decode":
                keys, values = read(cache, k, v, entry=entry, position=turn.position, layout=self.layout)
            cache = write(cache, k, v, entry=entry, position=turn.position, active=turn.active, layout=self.layout)
            attend = ATTENTION[self.layout.case.attention, self.layout.case.phase]
            mixed = place(attend(q, keys, values, position=turn.position), "stages batch seq heads head_dim")
        with xp.Trace("layer.attention.out"):
            out = torch.einsum("zbshk,zhkd->zbsd", mixed, self.o)
            return place(out, "stages batch seq embed"), cache


class Mlp(nn.Module):
    """SwiGLU feed-forward: column-parallel in, row-parallel out.

    Under MEGATRON: one all-reduce over `tp`, from `down`.
    """

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.gate = layout.param("layers stages embed ffn")
        self.up = layout.param("layers stages embed ffn")
        self.down = layout.param("layers stages ffn embed")

    def forward(self, x: Stream) -> Stream:
        with xp.Trace("layer.mlp.up"):
            gate, up = (torch.einsum("zbsd,zdf->zbsf", x, weight) for weight in (self.gate, self.up))
            hidden = self.layout.place(F.silu(gate) * up, "stages batch seq ffn")
        with xp.Trace("layer.mlp.down"):
            out = torch.einsum("zbsf,zfd->zbsd", hidden, self.down)
            return self.layout.place(out, "stages batch seq embed")


class Layer(nn.Module):
    """One decoder layer of every stage at once: two all-reduces over `tp`."""

    def __init__(self, layout: Layout):
        super().__init__()
        self.attention_norm = Norm(layout, dims="layers stages embed")
        self.attention = Attention(layout)
        self.mlp_norm = Norm(layout, dims="layers stages embed")
        self.mlp = Mlp(layout)

    def forward(self, x: Stream, cache: Cache, *, entry: Int[Tensor, ""], turn: Turn) -> tuple[Stream, Cache]:
        mixed, cache = self.attention(self.attention_norm(x), cache, entry=entry, turn=turn)
        x = x + mixed
        return x + self.mlp(self.mlp_norm(x)), cache
