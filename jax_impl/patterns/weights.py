"""Weights: compressed, adapted, and their gradients."""

import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern


@pattern(x=P("dp", None), w=P("dp", None), scale=P(None), out=P("dp", None))
def weight_int8(x, w, scale):
    return (x @ w.astype(x.dtype)) * scale


@pattern(x=P("dp", None), w=P("dp", None), scale=P(None), out=P("dp", None))
def weight_int8_scaled(x, w, scale):
    return x @ (w.astype(x.dtype) * scale)


@pattern(
    x=P(None, None),
    w=P(None, "tp"),
    a=P(None, None),
    b=P(None, "tp"),
    out=P(None, "tp"),
)
def lora_columns(x, w, a, b):
    return x @ w + (x @ a) @ b


@pattern(
    x=P(None, None),
    w=P(None, "tp"),
    a=P(None, "tp"),
    b=P(None, "tp"),
    out=P(None, "tp"),
)
def lora_rank(x, w, a, b):
    return x @ w + (x @ a) @ b


@pattern(
    x=P(None, "tp"),
    w=P("tp", None),
    a=P("tp", None),
    b=P(None, None),
    out=P(None, None),
)
def lora_rows(x, w, a, b):
    return x @ w + (x @ a) @ b


@pattern(
    x=P(None, "tp"),
    w1=P("tp", None),
    w2=P("tp", None),
    out=(P(None, None), P(None, None)),
)
def sums_joined(x, w1, w2):
    return x @ w1, x @ w2


@pattern(x=P("dp", "cp", None), g=P("dp", "cp", None), out=P("dp", None))
def gradient_scattered(x, g):
    return jnp.einsum("bsd,bsf->df", x, g)


@pattern(x=P("dp", "cp", None), g=P("dp", "cp", None), out=P("dp", "cp"))
def gradient_two_dims(x, g):
    return jnp.einsum("bsd,bsf->df", x, g)


@pattern(ids=P("dp", "cp"), g=P("dp", "cp", None), out=P(None, None))
def embedding_gradient(ids, g):
    return jnp.zeros((8192, g.shape[2]), g.dtype).at[ids].add(g)
