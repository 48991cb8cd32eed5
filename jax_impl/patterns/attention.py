"""Attention and its cache."""

import jax
import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern, pin


@pattern(
    q=P(None, None, "tp", None),
    k=P(None, None, "tp", None),
    v=P(None, None, "tp", None),
    out=P(None, None, "tp", None),
)
def attention_heads(q, k, v):
    scores = jnp.einsum("bsnh,btnh->bnst", q, k)
    shares = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bnst,btnh->bsnh", shares, v)


@pattern(
    q=P("dp", "tp", None, None),
    k=P("dp", "tp", None, None),
    out=P("dp", "tp", None, None),
)
def attention_merged(q, k):
    b, n, s, h = q.shape
    q, k = q.reshape(b * n, s, h), k.reshape(b * n, s, h)
    scores = jnp.matmul(q, k.swapaxes(1, 2))
    return scores.reshape(b, n, s, s)


@pattern(
    q=P(None, "tp", None, None),
    k=P(None, "tp", None, None),
    v=P(None, "tp", None, None),
    out=P(None, "tp", None, None),
)
def attention_matmul(q, k, v):
    scores = q @ k.swapaxes(2, 3)
    shares = jax.nn.softmax(scores, axis=-1)
    return shares @ v


@pattern(
    q=P("dp", "tp", None, None),
    k=P("dp", "tp", None, None),
    out=P("dp", "tp", None, None),
)
def attention_one_sequence(q, k):
    b, n, s, h = q.shape
    q, k = q.reshape(b * n, s, h), k.reshape(b * n, s, h)
    scores = jnp.matmul(q, k.swapaxes(1, 2))
    return scores.reshape(b, n, s, s)


@pattern(
    q=P(None, "tp", None, None),
    k=P(None, "tp", None, None),
    v=P(None, "tp", None, None),
    out=P(None, "tp", None, None),
)
def attention_per_sequence(q, k, v):
    def attend(q, k, v):
        shares = jax.nn.softmax(q @ k.swapaxes(1, 2), axis=-1)
        return shares @ v

    return jnp.stack([attend(q[i], k[i], v[i]) for i in range(len(q))])


@pattern(
    q=P("dp", "tp", None, None),
    k=P("dp", "tp", None, None),
    out=P("dp", "tp", None, None),
)
def attention_heads_first(q, k):
    b, n, s, h = q.shape
    q, k = (x.reshape(2, b // 2, n, s, h).swapaxes(1, 2) for x in (q, k))  # [dp, N, B/dp, S, H]
    q, k = q.reshape(b * n, s, h), k.reshape(b * n, s, h)
    scores = jnp.matmul(q, k.swapaxes(1, 2))
    return scores.reshape(2, n, b // 2, s, s).swapaxes(1, 2).reshape(b, n, s, s)


@pattern(
    x=P(None, None),
    wq=P(None, "tp"),
    wk=P(None, "tp"),
    out=P(None, "tp", None),
)
def gqa_few_heads(x, wq, wk):
    q = (x @ wq).reshape(x.shape[0], 8, 128)
    k = (x @ wk).reshape(x.shape[0], 2, 128)
    k = jnp.repeat(k, 4, axis=1)
    return jnp.einsum("snh,tnh->snt", q, k)


@pattern(
    cache=P(None, None, "tp", None),
    new=P(None, None, "tp", None),
    at=P(),
    out=P(None, None, "tp", None),
)
def cache_write_heads(cache, new, at):
    return jax.lax.dynamic_update_slice(cache, new, (0, at, 0, 0))


@pattern(
    cache=P(None, "cp", None, None),
    new=P(None, None, None, None),
    at=P(),
    out=P(None, "cp", None, None),
)
def cache_write_positions(cache, new, at):
    return jax.lax.dynamic_update_slice(cache, new, (0, at, 0, 0))


@pattern(
    q=P(None, None, None),
    k=P(None, "cp", None, None),
    v=P(None, "cp", None, None),
    out=P(None, None, None),
)
def cache_read_positions(q, k, v):
    scores = jnp.einsum("bnh,btnh->bnt", q, k).astype(jnp.float32)
    shares = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("bnt,btnh->bnh", shares, v)


@pattern(
    q=P(None, "cp", None, None),
    k=P(None, "cp", None, None),
    v=P(None, "cp", None, None),
    out=P(None, "cp", None, None),
)
def context_gather(q, k, v):
    k = pin(k, None, None, None, None)
    v = pin(v, None, None, None, None)
    scores = jnp.einsum("bsnh,btnh->bnst", q, k)
    shares = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bnst,btnh->bsnh", shares, v)


@pattern(
    q=P(None, "cp", None, None),
    k=P(None, "cp", None, None),
    v=P(None, "cp", None, None),
    out=P(None, "cp", None, None),
)
def context_ring(q, k, v):
    around = [(0, 1), (1, 2), (2, 3), (3, 0)]
    parts = P(None, "cp", None, None)

    @jax.shard_map(in_specs=(parts, parts, parts), out_specs=parts)
    def ring(q, k, v):
        total, mixed = 0.0, 0.0
        for hop in range(4):
            if hop:  # mine to the next device, and I get new ones
                k = jax.lax.ppermute(k, "cp", around)
                v = jax.lax.ppermute(v, "cp", around)
            scores = jnp.einsum("bsnh,btnh->bsnt", q, k)
            shares = jnp.exp(scores.astype(jnp.float32))
            total += jnp.sum(shares, axis=-1, keepdims=True)
            mixed += jnp.einsum("bsnt,btnh->bsnh", shares, v)
        return (mixed / total).astype(q.dtype)

    return ring(q, k, v)


@pattern(
    q=P(None, "cp", None, None),
    k=P(None, "cp", None, None),
    v=P(None, "cp", None, None),
    out=P(None, "cp", None, None),
)
def window_masked(q, k, v):
    places = jnp.arange(q.shape[1])
    back = places[:, None] - places
    scores = jnp.einsum("bsnh,btnh->bnst", q, k)
    scores = jnp.where((back >= 0) & (back < 128), scores, -jnp.inf)
    shares = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bnst,btnh->bsnh", shares, v)


@pattern(
    q=P(None, "cp", None, None),
    k=P(None, "cp", None, None),
    v=P(None, "cp", None, None),
    out=P(None, "cp", None, None),
)
def window_blocks(q, k, v):
    def with_before(x):  # each block, and the one before it
        before = jnp.pad(x, ((0, 0), (1, 0), (0, 0), (0, 0), (0, 0)))[:, :-1]
        return jnp.concatenate([before, x], axis=2)

    shape = q.shape
    q, k, v = (x.reshape(shape[0], -1, 128, *shape[2:]) for x in (q, k, v))
    k, v = with_before(k), with_before(v)  # the mask within two blocks is left out
    shares = jax.nn.softmax(jnp.einsum("bmsnh,bmtnh->bmnst", q, k), axis=-1)
    return jnp.einsum("bmnst,bmtnh->bmsnh", shares, v).reshape(shape)
