"""One decoder layer as PyTorch's users write it, in Hugging Face's names: what the words of the twin's `Layer` mean.

The step of a case does not use it.  A test compiles both on one mesh: the same collectives, of the same bytes.

    layout.param("layers stages heads embed head_dim")   nn.Linear whose weight is marked ("tp", None)
    layout.place(x, "stages batch seq embed")            mark_sharding(x, mesh, ("dp", None, None))
    the dims `layers` and `stages`                       a list of layers, and one pipeline stage
"""

import torch
import torch.nn.functional as F  # noqa: N812
import torch_xla.distributed.spmd as xs
from jaxtyping import Float
from torch import Tensor, nn

from meshes.models import Model
from meshes.twins.positions import inverse_frequencies

Hidden = Float[Tensor, "batch seq hidden"]


class LlamaDecoderLayer(nn.Module):
    """Attention and feed-forward of a prompt: column-parallel in, row-parallel out.  Two all-reduces over `tp`."""

    def __init__(self, config: Model, *, mesh: xs.Mesh):
        super().__init__()
        hidden, heads, kv_heads, head_dim = config.embed, config.heads, config.kv_heads, config.head_dim
        self.config, self.mesh = config, mesh
        self.input_layernorm = norm(config)
        self.q_proj = linear(hidden, heads * head_dim)
        self.k_proj = linear(hidden, kv_heads * head_dim)
        self.v_proj = linear(hidden, kv_heads * head_dim)
        self.o_proj = linear(heads * head_dim, hidden)
        self.post_attention_layernorm = norm(config)
        self.gate_proj = linear(hidden, config.ffn)
        self.up_proj = linear(hidden, config.ffn)
        self.down_proj = linear(config.ffn, hidden)
        self.inv_freq: Tensor
        self.register_buffer("inv_freq", torch.from_numpy(inverse_frequencies(config)))

    def shard(self) -> None:
        """Say how each weight [outputs, inputs] is split, once the layer is on its device."""
        for column in (self.q_proj, self.k_proj, self.v_proj, self.gate_proj, self.up_proj):
            xs.mark_sharding(column.weight, self.mesh, ("tp", None))
        for row in (self.o_proj, self.down_proj):
            xs.mark_sharding(row.weight, self.mesh, (None, "tp"))

    def forward(self, hidden_states: Hidden) -> Hidden:
        hidden_states = self.pin(hidden_states + self.attention(self.input_layernorm(hidden_states)))
        return self.pin(hidden_states + self.mlp(self.post_attention_layernorm(hidden_states)))

    def attention(self, x: Hidden) -> Hidden:
        """Causal attention over the prompt, grouped heads."""
        batch, seq, _ = x.shape
        query, key, value = (
            projection(x).view(batch, seq, -1, self.config.head_dim)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = self.rotate(query), self.rotate(key)
        query, key, value = (each.transpose(1, 2) for each in (query, key, value))
        attn_output = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.o_proj(attn_output.transpose(1, 2).reshape(batch, seq, -1))

    def mlp(self, x: Hidden) -> Hidden:
        """SwiGLU."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))

    def pin(self, x: Hidden) -> Hidden:
        """Whole over `tp`, the batch over `dp`."""
        xs.mark_sharding(x, self.mesh, ("dp", None, None))
        return x

    def rotate(self, x: Float[Tensor, "batch seq heads head_dim"]) -> Float[Tensor, "batch seq heads head_dim"]:
        """Rotary embedding of positions from 0."""
        angles = torch.arange(x.shape[1], device=x.device)[:, None, None] * self.inv_freq
        cos, sin = torch.cos(angles), torch.sin(angles)
        left, right = x.float().chunk(2, dim=-1)
        return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)


def norm(config: Model) -> nn.RMSNorm:
    return nn.RMSNorm(config.embed, eps=config.norm_eps, dtype=torch.bfloat16)


def linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16)
