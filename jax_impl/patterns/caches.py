"""Caches of many sequences: a place of each, pages, a window that moves on, and all layers' in one array."""

import jax
import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern


@pattern(x=P("dp", None, None), at=P("dp"), out=P("dp", None))
def rows_read(x, at):
    return x[jnp.arange(len(x)), at]


@pattern(
    cache=P("dp", None, None, None),
    new=P("dp", None, None),
    at=P("dp"),
    out=P("dp", None, None, None),
)
def rows_write(cache, new, at):
    return cache.at[jnp.arange(len(cache)), at].set(new)


@pattern(
    cache=P("dp", None, None, None),
    new=P("dp", None, None),
    at=P("dp"),
    out=P("dp", None, None, None),
)
def rows_write_masked(cache, new, at):
    here = jnp.arange(cache.shape[1]) == at[:, None]
    return jnp.where(here[:, :, None, None], new[:, None], cache)


@pattern(pages=P("dp", None, None), table=P("dp", None), out=P("dp", None, None, None))
def pages_read(pages, table):
    return pages[table]


@pattern(
    pages=P("dp", None, None),
    new=P("dp", None),
    page=P("dp"),
    slot=P("dp"),
    out=P("dp", None, None),
)
def pages_write(pages, new, page, slot):
    return pages.at[page, slot].set(new)


@pattern(
    pages=P("dp", None, None, None),
    table=P("dp", None),
    out=P("dp", None, None, None),
)
def pages_replicas(pages, table):
    return jax.vmap(lambda pages, table: pages[table])(pages, table)


@pattern(
    pages=P("dp", None, None, None),
    new=P("dp", None, None),
    page=P("dp", None),
    slot=P("dp", None),
    out=P("dp", None, None, None),
)
def pages_replicas_write(pages, new, page, slot):
    def write(pages, new, page, slot):
        return pages.at[page, slot].set(new)

    return jax.vmap(write)(pages, new, page, slot)


@pattern(
    cache=P(None, "cp", None, None),
    new=P(None, None, None, None),
    out=P(None, "cp", None, None),
)
def slide_cat(cache, new):
    return jnp.concatenate([cache[:, 1:], new], axis=1)


@pattern(
    cache=P(None, "cp", None, None),
    new=P(None, None, None, None),
    out=P(None, "cp", None, None),
)
def slide_masked(cache, new):
    moved = jnp.pad(cache, ((0, 0), (0, 1), (0, 0), (0, 0)))[:, 1:]
    last = jnp.arange(cache.shape[1]) == cache.shape[1] - 1
    return jnp.where(last[:, None, None], new, moved)


@pattern(
    x=P(None, "tp", None, None),
    cache=P(None, None, None, "tp"),
    at=P(),
    out=(P(None, "tp", None, None), P(None, None, None, "tp")),
)
def cache_loop_index(x, cache, at):
    def layer(carry, i):
        x, cache = carry
        new = x[:, :, 0].reshape(len(x), -1)  # what this layer keeps of the token
        cache = cache.at[i].set(cache[i].at[:, at].set(new))
        keys = cache[i].reshape(*cache.shape[1:3], -1, x.shape[3])
        shares = jax.nn.softmax(jnp.einsum("bkgh,bskh->bkgs", x, keys), axis=-1)
        return (jnp.einsum("bkgs,bskh->bkgh", shares, keys), cache), None

    return jax.lax.scan(layer, (x, cache), jnp.arange(len(cache)))[0]


@pattern(
    x=P(None, "tp", None, None),
    cache=P(None, None, None, "tp"),
    at=P(),
    out=(P(None, "tp", None, None), P(None, None, None, "tp")),
)
def cache_loop_masked(x, cache, at):
    def layer(carry, i):
        x, cache = carry
        new = x[:, :, 0].reshape(len(x), 1, -1)
        here = jnp.arange(cache.shape[2]) == at
        keys = jnp.where(here[:, None], new, cache[i])  # read before it is written
        keys = keys.reshape(*keys.shape[:2], -1, x.shape[3])
        cache = jax.lax.dynamic_update_slice(cache, new[None], (i, 0, at, 0))
        shares = jax.nn.softmax(jnp.einsum("bkgh,bskh->bkgs", x, keys), axis=-1)
        return (jnp.einsum("bkgs,bskh->bkgh", shares, keys), cache), None

    return jax.lax.scan(layer, (x, cache), jnp.arange(len(cache)))[0]


@pattern(
    x=P(None, "tp", None, None),
    cache=P(None, None, "tp", None, None),
    at=P(),
    out=(P(None, "tp", None, None), P(None, None, "tp", None, None)),
)
def cache_loop_heads(x, cache, at):
    def layer(carry, i):
        x, cache = carry
        cache = cache.at[i].set(cache[i].at[:, :, at].set(x[:, :, 0]))
        keys = cache[i]
        shares = jax.nn.softmax(jnp.einsum("bkgh,bksh->bkgs", x, keys), axis=-1)
        return (jnp.einsum("bkgs,bksh->bkgh", shares, keys), cache), None

    return jax.lax.scan(layer, (x, cache), jnp.arange(len(cache)))[0]
