"""Operations that only move data about: free on one device, not always on a mesh."""

import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern


@pattern(x=P(None, "tp", None), out=P(None, "tp"))
def reshape_outer(x):
    t, n, h = x.shape
    return x.reshape(t, n * h)


@pattern(x=P(None, None, "tp"), out=P(None, "tp"))
def reshape_inner(x):
    t, n, h = x.shape
    return x.reshape(t, n * h)


@pattern(x=P("tp", None), out=P(None, "tp"))
def transpose_free(x):
    return x.T


@pattern(x=P("tp", None), out=P("tp", None))
def transpose_moved(x):
    return x.T


@pattern(a=P("tp", None), b=P("tp", None), out=P("tp", None))
def concat_split(a, b):
    return jnp.concatenate([a, b], axis=0)


@pattern(x=P("tp", None), out=P("tp", None))
def roll_split(x):
    return jnp.roll(x, 1, axis=0)


@pattern(x=P(None, "tp", None), out=P(None, None))
def last_token(x):
    return x[:, -1]


@pattern(x=P(None, "tp", None), out=P(None, None))
def last_token_masked(x):
    last = jnp.arange(x.shape[1]) == x.shape[1] - 1
    return jnp.sum(jnp.where(last[:, None], x, 0), axis=1)


@pattern(x=P(None, None), w=P(None, "tp"), out=P(None, "tp"))
def fused_halves(x, w):
    gate, up = jnp.split(x @ w, 2, axis=-1)
    return gate * up


@pattern(x=P(None, None), w=P(None, None, "tp"), out=P(None, "tp"))
def fused_pairs(x, w):
    both = jnp.einsum("td,dcf->ctf", x, w)
    return both[0] * both[1]
