"""Pieces of a model: a feed-forward, an embedding, a norm, a softmax, a choice, a stack of layers."""

import jax
import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern, pin


@pattern(
    x=P(None, None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P(None, None),
)
def mlp(x, w1, w2):
    hidden = jax.nn.silu(x @ w1)
    return hidden @ w2


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def mlp_sequence(x, w1, w2):
    whole = pin(x, None, None)
    hidden = jax.nn.silu(whole @ w1)
    return hidden @ w2


@pattern(table=P("tp", None), ids=P(None), out=P(None, None))
def embedding_vocab(table, ids):
    return jnp.take(table, ids, axis=0)


@pattern(table=P(None, "tp"), ids=P(None), out=P(None, "tp"))
def embedding_width(table, ids):
    return jnp.take(table, ids, axis=0)


@pattern(x=P(None, "tp"), scale=P("tp"), out=P(None, "tp"))
def norm_width(x, scale):
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide * wide, axis=-1, keepdims=True)
    return (wide * jax.lax.rsqrt(mean + 1e-6)).astype(x.dtype) * scale


@pattern(scores=P(None, "tp"), out=P(None, "tp"))
def softmax_split(scores):
    return jax.nn.softmax(scores, axis=-1)


@pattern(logits=P(None, "tp"), out=P(None))
def sample_greedy(logits):
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


@pattern(logits=P(None, "tp"), out=P(None))
def sample_top(logits):
    ids = jax.lax.top_k(logits, 8)[1]
    return ids[:, -1]


@pattern(x=P(None, None), stack=P("pp", None, None), out=P(None, None))
def layers_split(x, stack):
    def layer(x, w):
        return x + x @ w, None

    return jax.lax.scan(layer, x, stack)[0]


@pattern(x=P(None, None), stack=P(None, None, "pp"), out=P(None, None))
def layers_inside(x, stack):
    def layer(x, w):
        return x + x @ w, None

    return jax.lax.scan(layer, x, stack)[0]
