"""A decoder layer: attention, then one feed-forward or several.

Its weights are stacked `layers stages …`; a call gets the slice of one layer.
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Int

from jax_impl.decoder.attention import Attention, StepContext, Stream
from jax_impl.decoder.cache import Cache
from jax_impl.decoder.moe import Moe
from jax_impl.decoder.norm import Norm
from jax_impl.sharding.layout import STREAM, Layout
from jax_impl.sharding.typed import out_sharding


class Mlp(nnx.Module):
    """SwiGLU feed-forward: column-parallel in, row-parallel out.

    Under MEGATRON: one all-reduce over `tp`, from `down`.
    Under SEQUENCE_PARALLEL: an all-gather before `gate` and `up` and a reduce-scatter after `down`.
    """

    def __init__(self, layout: Layout, *, ffn: str):
        self.layout = layout
        self.ffn = ffn
        self.gate = layout.param(f"layers stages embed {ffn}")
        self.up = layout.param(f"layers stages embed {ffn}")
        self.down = layout.param(f"layers stages {ffn} embed")

    def __call__(self, x: Stream) -> Stream:
        layout = self.layout
        with layout.scope("layer.mlp.up"):
            x = layout.gather_sequence(x)
            gate, up = (jnp.einsum("zbsd,zdf->zbsf", x, weight[...]) for weight in (self.gate, self.up))
            hidden = layout.place(jax.nn.silu(gate) * up, f"stages batch seq {self.ffn}")
        with layout.scope("layer.mlp.down"):
            out = jnp.einsum("zbsf,zfd->zbsd", hidden, self.down[...], out_sharding=out_sharding(layout, STREAM))
            return layout.reduce_output(out, over=self.ffn)


class Layer(nnx.Module):
    """One decoder layer of every stage at once: two all-reduces over `tp`, or their equivalents.

    A layer of experts has `moe` in the place of `mlp`, and where the model has shared experts `shared` beside it.
    """

    def __init__(self, layout: Layout):
        model = layout.case.model
        self.layout = layout
        self.attention_norm = Norm(layout, dims="layers stages embed")
        self.attention = Attention(layout)
        self.mlp_norm = Norm(layout, dims="layers stages embed")
        self.mlp = None if model.experts else Mlp(layout, ffn="ffn")
        self.moe = Moe(layout) if model.experts else None
        self.shared = Mlp(layout, ffn="shared_ffn") if model.shared_ffn else None
        self.shared_gate = layout.param("layers stages embed") if model.shared_ffn else None

    def __call__(self, x: Stream, cache: Cache, *, entry: Int[Array, ""], context: StepContext) -> tuple[Stream, Cache]:
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
            gate = jax.nn.sigmoid(jnp.einsum("zbsd,zd->zbs", x, self.shared_gate[...]))
        return self.moe(x) + self.shared(x) * gate[..., None]
