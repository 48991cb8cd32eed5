"""What nobody has said how to split, and what the partitioner makes of it: pairs on either side of a border."""

import jax
import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern, pin


@pattern(a=P("dp", None), b=P(None, "tp"), out=P(None))
def decide_both_fit(a, b):
    return jnp.sum(a + b, axis=0)


@pattern(a=P("dp", None), b=P("tp", None), out=P(None))
def decide_both_clash(a, b):
    return jnp.sum(a + b, axis=0)


@pattern(a=P("tp", None), b=P(None, "tp"), out=P(None))
def decide_first_rows(a, b):
    return jnp.sum(a + b, axis=0)


@pattern(a=P("tp", None), b=P(None, "tp"), out=P(None))
def decide_first_columns(a, b):
    return jnp.sum(b + a, axis=0)


@pattern(a=P("tp", None), b=P(None, "tp"), out=P(None))
def decide_used_once(a, b):
    return jnp.sum(jnp.tanh(b) + a, axis=0)


@pattern(a=P("tp", None), b=P(None, "tp"), out=P(None))
def decide_used_twice(a, b):
    return jnp.sum(b * b + a, axis=0)


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def decide_tokens_few(x, w1, w2):
    return jax.nn.silu(x @ w1) @ w2


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def decide_tokens_many(x, w1, w2):
    return jax.nn.silu(x @ w1) @ w2


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    r=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def decide_tokens_joined(x, w1, r, w2):
    return jax.nn.silu(x @ w1 + r) @ w2


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def decide_looks_ahead(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w3=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def decide_gated(x, w1, w3, w2):
    return (jax.nn.silu(x @ w1) * (x @ w3)) @ w2


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w3=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def decide_gated_pinned(x, w1, w3, w2):
    hidden = jax.nn.silu(x @ w1) * (x @ w3)
    return pin(hidden, None, "tp") @ w2


@pattern(x=P("tp", None), w=P(None, "tp"), out=P("tp", None))
def decide_wanted_rows(x, w):
    return x @ w


@pattern(x=P("tp", None), w=P(None, "tp"), out=P(None, "tp"))
def decide_wanted_columns(x, w):
    return x @ w


@pattern(x=P(None, None), w=P(None, "tp"), out=P(None, None))
def decide_wanted_whole(x, w):
    return x @ w


@pattern(x=P(None, None), w=P(None, "tp"), out=P(None, None))
def decide_wanted_later(x, w):
    return jnp.tanh(x @ w)


@pattern(x=P("tp", None), w=P("tp", None), out=P("tp", None))
def decide_order_kept(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P("tp", None), out=P("tp", None))
def decide_order_summed(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P(None, None), out=P("tp", None))
def decide_order_moved(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P(None, None), out=P(None, None))
def decide_sum_narrow(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P(None, None), out=P(None, None))
def decide_sum_wide(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P(None, None), out=P(None, None))
def decide_sum_made(x, w):
    return x @ (w * 2)


@pattern(
    x=P(None, "tp", None),
    w=P(None, None),
    out=P(None, "tp", None, None),
)
def decide_view_heads(x, w):
    b, s, _ = x.shape
    y = jnp.einsum("bsd,fd->bsf", x, w)
    return y.reshape(b, s, 8, 128).swapaxes(1, 2)


@pattern(
    x=P(None, "tp", None),
    w=P(None, None),
    out=P(None, None, None, "tp"),
)
def decide_view_width(x, w):
    b, s, _ = x.shape
    y = jnp.einsum("bsd,fd->bsf", x, w)
    return y.reshape(b, s, 8, 128).swapaxes(1, 2)


@pattern(
    x=P(None, "tp", None),
    w=P(None, None),
    out=P(None, "tp", None, None),
)
def decide_view_pinned(x, w):
    b, s, _ = x.shape
    y = jnp.einsum("bsd,fd->bsf", x, w)
    y = pin(y, None, "tp", None)
    return y.reshape(b, s, 8, 128).swapaxes(1, 2)


@pattern(
    q=P(None, None, None, "tp"),
    k=P(None, None, None, "tp"),
    v=P(None, None, None, "tp"),
    out=P(None, None, None, "tp"),
)
def gqa_head_dim(q, k, v):
    scores = jnp.einsum("bkgh,bskh->bkgs", q, k).astype(jnp.float32)
    shares = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("bkgs,bskh->bkgh", shares, v)


@pattern(
    q=P(None, None, None, "tp"),
    k=P(None, None, None, "tp"),
    v=P(None, None, None, "tp"),
    out=P(None, None, None, None),
)
def gqa_head_dim_whole(q, k, v):
    scores = jnp.einsum("bkgh,bskh->bkgs", q, k).astype(jnp.float32)
    shares = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("bkgs,bskh->bkgh", shares, v)
