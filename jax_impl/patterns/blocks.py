"""Whole blocks: a pipeline's shift, a layer, experts."""

import jax
import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern, pin


@pattern(state=P("pp", None, None), out=P("pp", None, None))
def pipeline_shift(state):
    return jnp.pad(state, ((1, 0), (0, 0), (0, 0)))[:4]


@pattern(state=P("pp", None, None), out=P("pp", None, None))
def pipeline_roll(state):
    return jnp.roll(state, 1, axis=0)


@pattern(
    x=P("dp", None, None),
    wqkv=P(None, None, "tp", None),
    wo=P("tp", None, None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("dp", None, None),
)
def layer_dp_tp(x, wqkv, wo, w1, w2):
    q, k, v = jnp.einsum("bsd,dcnh->cbsnh", x, wqkv)
    scores = jnp.einsum("bsnh,btnh->bnst", q, k)
    shares = jax.nn.softmax(scores, axis=-1)
    mixed = jnp.einsum("bnst,btnh->bsnh", shares, v)
    x = x + jnp.einsum("bsnh,nhd->bsd", mixed, wo)
    x = pin(x, "dp", None, None)
    hidden = jax.nn.silu(x @ w1)
    return x + hidden @ w2


@pattern(
    x=P(None, "tp", None),
    wqkv=P(None, None, "tp", None),
    wo=P("tp", None, None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P(None, "tp", None),
)
def layer_sequence(x, wqkv, wo, w1, w2):
    whole = pin(x, None, None, None)
    q, k, v = jnp.einsum("bsd,dcnh->cbsnh", whole, wqkv)
    scores = jnp.einsum("bsnh,btnh->bnst", q, k)
    shares = jax.nn.softmax(scores, axis=-1)
    mixed = jnp.einsum("bnst,btnh->bsnh", shares, v)
    mixed = jnp.einsum("bsnh,nhd->bsd", mixed, wo)
    x = x + pin(mixed, None, "tp", None)
    whole = pin(x, None, None, None)
    hidden = jax.nn.silu(whole @ w1)
    return x + hidden @ w2


@pattern(sent=P("ep", None, None, None), out=P(None, "ep", None, None))
def expert_dispatch(sent):
    return sent


@pattern(
    x=P("ep", None, None),
    seats=P("ep", None, None, None),
    w1=P("ep", None, "tp"),
    w2=P("ep", "tp", None),
    out=P("ep", None, None),
)
def moe_layer(x, seats, w1, w2):
    sent = jnp.einsum("gtec,gtd->egcd", seats, x)
    sent = pin(sent, None, "ep", None, None)
    sent = pin(sent, "ep", None, None, None)
    hidden = jax.nn.silu(jnp.einsum("egcd,edf->egcf", sent, w1))
    made = jnp.einsum("egcf,efd->egcd", hidden, w2)
    made = pin(made, "ep", None, None, None)
    back = pin(made, None, "ep", None, None)
    return jnp.einsum("gtec,egcd->gtd", seats, back)


@pattern(
    x=P(None, None),
    w=P("ep", None, None),
    counts=P(None),
    out=P(None, None),
)
def ragged_experts(x, w, counts):
    return jax.lax.ragged_dot(x, w, counts)
