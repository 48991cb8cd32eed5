"""One decoder layer as Flax's users write it, in Hugging Face's names: what the words of the twin's `Layer` mean.

The step of a case does not use it.  A test compiles both on one mesh: the same collectives, of the same bytes.

    layout.param("layers stages heads embed head_dim")   nnx.Linear with a kernel split (None, "tp")
    layout.place(x, "stages batch seq embed")            with_sharding_constraint(x, P("dp"))
    the dims `layers` and `stages`                       a list of layers, and one pipeline stage
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float

from meshes.models import Model
from meshes.twins.positions import inverse_frequencies

Hidden = Float[Array, "batch seq hidden"]


class LlamaDecoderLayer(nnx.Module):
    """Attention and feed-forward of a prompt: column-parallel in, row-parallel out.  Two all-reduces over `tp`."""

    def __init__(self, config: Model, *, rngs: nnx.Rngs):
        hidden, heads, kv_heads, head_dim = config.embed, config.heads, config.kv_heads, config.head_dim
        self.config = config
        self.input_layernorm = norm(config, rngs)
        self.q_proj = linear(hidden, heads * head_dim, (None, "tp"), rngs)
        self.k_proj = linear(hidden, kv_heads * head_dim, (None, "tp"), rngs)
        self.v_proj = linear(hidden, kv_heads * head_dim, (None, "tp"), rngs)
        self.o_proj = linear(heads * head_dim, hidden, ("tp", None), rngs)
        self.post_attention_layernorm = norm(config, rngs)
        self.gate_proj = linear(hidden, config.ffn, (None, "tp"), rngs)
        self.up_proj = linear(hidden, config.ffn, (None, "tp"), rngs)
        self.down_proj = linear(config.ffn, hidden, ("tp", None), rngs)

    def __call__(self, hidden_states: Hidden) -> Hidden:
        hidden_states = pin(hidden_states + self.attention(self.input_layernorm(hidden_states)))
        return pin(hidden_states + self.mlp(self.post_attention_layernorm(hidden_states)))

    def attention(self, x: Hidden) -> Hidden:
        """Causal attention over the prompt, grouped heads."""
        batch, seq, _ = x.shape
        query, key, value = (
            projection(x).reshape(batch, seq, -1, self.config.head_dim)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = rotate(query, self.config), rotate(key, self.config)
        attn_output = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        return self.o_proj(attn_output.reshape(batch, seq, -1))

    def mlp(self, x: Hidden) -> Hidden:
        """SwiGLU."""
        return self.down_proj(jax.nn.silu(self.gate_proj(x)) * self.up_proj(x))


def norm(config: Model, rngs: nnx.Rngs) -> nnx.RMSNorm:
    return nnx.RMSNorm(
        config.embed,
        epsilon=config.norm_eps,
        dtype=jnp.bfloat16,
        param_dtype=jnp.bfloat16,
        rngs=rngs,
        scale_init=nnx.with_partitioning(nnx.initializers.ones_init(), (None,)),
    )


def linear(inputs: int, outputs: int, split: tuple[str | None, ...], rngs: nnx.Rngs) -> nnx.Linear:
    """A projection whose kernel [inputs, outputs] is split so."""
    return nnx.Linear(
        inputs,
        outputs,
        use_bias=False,
        dtype=jnp.bfloat16,
        param_dtype=jnp.bfloat16,
        rngs=rngs,
        kernel_init=nnx.with_partitioning(nnx.initializers.lecun_normal(), split),
    )


def pin(x: Hidden) -> Hidden:
    """Whole over `tp`, the batch over `dp`."""
    return jax.lax.with_sharding_constraint(x, P("dp"))


def rotate(x: Float[Array, "batch seq heads head_dim"], config: Model) -> Float[Array, "batch seq heads head_dim"]:
    """Rotary embedding of positions from 0."""
    angles = jnp.arange(x.shape[1])[:, None, None] * inverse_frequencies(config)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1).astype(x.dtype)
