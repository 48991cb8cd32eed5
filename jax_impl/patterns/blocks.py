"""Whole blocks: a pipeline's shift, a layer, experts."""

import jax
import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern, pin

STATE = P("pp", None, None)


@pattern(state=STATE, out=STATE)
def pipeline_shift(state):
    return jnp.pad(state, ((1, 0), (0, 0), (0, 0)))[:4]


@pattern(state=STATE, out=STATE)
def pipeline_roll(state):
    return jnp.roll(state, 1, axis=0)


@pattern(x=P("dp", None, None), wqkv=P(None, None, "tp", None), wo=P("tp", None, None),
         w1=P(None, "tp"), w2=P("tp", None), out=P("dp", None, None))  # fmt: skip
def layer_dp_tp(x, wqkv, wo, w1, w2):
    q, k, v = jnp.einsum("bsd,dcnh->cbsnh", x, wqkv)
    scores = jnp.einsum("bsnh,btnh->bnst", q, k)
    mixed = jnp.einsum("bnst,btnh->bsnh", jax.nn.softmax(scores, axis=-1), v)
    x = pin(x + jnp.einsum("bsnh,nhd->bsd", mixed, wo), "dp", None, None)
    hidden = jax.nn.silu(x @ w1)
    return x + hidden @ w2


@pattern(x=P(None, "tp", None), wqkv=P(None, None, "tp", None), wo=P("tp", None, None),
         w1=P(None, "tp"), w2=P("tp", None), out=P(None, "tp", None))  # fmt: skip
def layer_sequence(x, wqkv, wo, w1, w2):
    whole = pin(x, None, None, None)
    q, k, v = jnp.einsum("bsd,dcnh->cbsnh", whole, wqkv)
    scores = jnp.einsum("bsnh,btnh->bnst", q, k)
    mixed = jnp.einsum("bnst,btnh->bsnh", jax.nn.softmax(scores, axis=-1), v)
    x = x + pin(jnp.einsum("bsnh,nhd->bsd", mixed, wo), None, "tp", None)
    whole = pin(x, None, None, None)
    hidden = jax.nn.silu(whole @ w1)
    return x + hidden @ w2


@pattern(sent=P("ep", None, None, None), out=P(None, "ep", None, None))
def expert_dispatch(sent):
    return sent


@pattern(x=P("ep", None, None), seats=P("ep", None, None, None), w1=P("ep", None, "tp"), w2=P("ep", "tp", None),
         out=P("ep", None, None))  # fmt: skip
def moe_layer(x, seats, w1, w2):
    sent = pin(jnp.einsum("gtec,gtd->egcd", seats, x), None, "ep", None, None)
    sent = pin(sent, "ep", None, None, None)
    hidden = jax.nn.silu(jnp.einsum("egcd,edf->egcf", sent, w1))
    made = pin(jnp.einsum("egcf,efd->egcd", hidden, w2), "ep", None, None, None)
    back = pin(made, None, "ep", None, None)
    return jnp.einsum("gtec,egcd->gtd", seats, back)
