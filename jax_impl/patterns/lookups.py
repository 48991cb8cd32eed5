"""Lookups, losses and statistics: what looks at places of a split dim, or sums over it."""

import jax
import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern


@pattern(table=P("tp", None), ids=P("tp"), out=P("tp", None))
def embedding_ids(table, ids):
    return jnp.take(table, ids, axis=0)


@pattern(x=P(None, "tp", None), at=P(), out=P(None, None))
def read_traced(x, at):
    return jax.lax.dynamic_index_in_dim(x, at, axis=1, keepdims=False)


@pattern(logits=P(None, "tp"), labels=P(None), out=P(None))
def gather_along(logits, labels):
    return jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]


@pattern(
    x=P(None, "tp"),
    scale=P("tp"),
    shift=P("tp"),
    out=P(None, "tp"),
)
def layernorm_width(x, scale, shift):
    wide = x.astype(jnp.float32)
    apart = wide - jnp.mean(wide, axis=-1, keepdims=True)
    spread = jnp.mean(apart * apart, axis=-1, keepdims=True)
    even = apart * jax.lax.rsqrt(spread + 1e-5)
    return even.astype(x.dtype) * scale + shift


@pattern(logits=P(None, "tp"), labels=P(None), out=P(None))
def cross_entropy(logits, labels):
    logs = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.take_along_axis(logs, labels[:, None], axis=1)[:, 0]


@pattern(x=P(None, None), w=P(None, "tp"), out=P(None, "tp"))
def split_three(x, w):
    q, k, v = jnp.split(x @ w, 3, axis=-1)
    return q * k + v


@pattern(
    x=P("dp", None),
    seats=P("dp", None, None),
    w1=P("ep", None, None),
    w2=P("ep", None, None),
    out=P("dp", None),
)
def dispatch_sum(x, seats, w1, w2):
    sent = jnp.einsum("tec,td->ecd", seats, x)
    hidden = jax.nn.silu(jnp.einsum("ecd,edf->ecf", sent, w1))
    made = jnp.einsum("ecf,efd->ecd", hidden, w2)
    return jnp.einsum("tec,ecd->td", seats, made)


@pattern(x=P("dp", None), scores=P("dp"), out=P("dp", None))
def sort_rows(x, scores):
    return x[jnp.argsort(scores)]
