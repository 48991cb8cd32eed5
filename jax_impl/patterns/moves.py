"""One tensor, moved from one split to another."""

import jax.numpy as jnp

from jax_impl.patterns.pattern import P, pattern


@pattern(x=P(None, "tp"), out=P(None, None))
def move_gather(x):
    return x * 2


@pattern(x=P(None, None), out=P(None, "tp"))
def move_slice(x):
    return x * 2


@pattern(x=P("tp", None), out=P(None, "tp"))
def move_exchange(x):
    return x * 2


@pattern(x=P("tp", None), out=P(None))
def move_sum(x):
    return jnp.sum(x, axis=0)


@pattern(x=P("tp", None, None), out=P("tp", None))
def move_sum_scatter(x):
    return jnp.sum(x, axis=0)


@pattern(x=P("tp", None, None), out=P("tp", None))
def move_sum_few(x):
    return jnp.sum(x, axis=0)
