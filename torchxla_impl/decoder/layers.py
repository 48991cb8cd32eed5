"""A decoder layer: attention, then one feed-forward or several.

Its weights are stacked `layers stages …`; a call gets the slice of one layer.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Int
from torch import Tensor, nn

from torchxla_impl.decoder.attention import Attention, StepContext, Stream
from torchxla_impl.decoder.cache import Cache
from torchxla_impl.decoder.moe import Moe
from torchxla_impl.decoder.norm import Norm
from torchxla_impl.sharding.layout import Layout


class Mlp(nn.Module):
    """SwiGLU feed-forward: column-parallel in, row-parallel out.

    Under MEGATRON: one all-reduce over `tp`, from `down`.
    Under SEQUENCE_PARALLEL: an all-gather before `gate` and `up` and a reduce-scatter after `down`.
    """

    def __init__(self, layout: Layout, *, ffn: str):
        super().__init__()
        self.layout = layout
        self.ffn = ffn
        self.gate = layout.param(f"layers stages embed {ffn}")
        self.up = layout.param(f"layers stages embed {ffn}")
        self.down = layout.param(f"layers stages {ffn} embed")

    def forward(self, x: Stream) -> Stream:
        layout = self.layout
        with layout.scope("layer.mlp.up"):
            x = layout.gather_sequence(x)
            gate, up = (torch.einsum("zbsd,zdf->zbsf", x, weight) for weight in (self.gate, self.up))
            hidden = layout.place(F.silu(gate) * up, f"stages batch seq {self.ffn}")
        with layout.scope("layer.mlp.down"):
            return layout.reduce_output(torch.einsum("zbsf,zfd->zbsd", hidden, self.down), over=self.ffn)


class Layer(nn.Module):
    """One decoder layer of every stage at once: two all-reduces over `tp`, or their equivalents.

    A layer of experts has `moe` in the place of `mlp`, and where the model has shared experts `shared` beside it.
    """

    def __init__(self, layout: Layout):
        super().__init__()
        model = layout.case.model
        self.layout = layout
        self.attention_norm = Norm(layout, dims="layers stages embed")
        self.attention = Attention(layout)
        self.mlp_norm = Norm(layout, dims="layers stages embed")
        self.mlp = None if model.experts else Mlp(layout, ffn="ffn")
        self.moe = Moe(layout) if model.experts else None
        self.shared = Mlp(layout, ffn="shared_ffn") if model.shared_ffn else None
        self.shared_gate = layout.param("layers stages embed") if model.shared_ffn else None

    def forward(self, x: Stream, cache: Cache, *, entry: Int[Tensor, ""], context: StepContext) -> tuple[Stream, Cache]:
        attn_out, cache = self.attention(self.attention_norm(x), cache, entry=entry, context=context)
        x = x + attn_out
        return x + self.feed_forward(self.mlp_norm(x)), cache

    def feed_forward(self, x: Stream) -> Stream:
        """The dense one; or the chosen experts, plus the shared experts times their own gate."""
        if self.moe is None:
            return self.mlp(x)  # type: ignore[misc]  # a layer has one of the two
        if self.shared is None or self.shared_gate is None:
            return self.moe(x)
        with self.layout.scope("layer.mlp.down"):
            gate = torch.sigmoid(torch.einsum("zbsd,zd->zbs", x, self.shared_gate))
        return self.moe(x) + self.shared(x) * gate[..., None]
