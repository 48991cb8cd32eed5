"""What runs between the blocks: sequence parallelism with no pins, merged dims, weights split for storage."""

import jax

from jax_impl.patterns.pattern import P, pattern, pin


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def sequence_unpinned(x, w1, w2):
    hidden = jax.nn.silu(x @ w1)
    return hidden @ w2


@pattern(
    x=P("tp", None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("tp", None),
)
def sequence_weights(x, w1, w2):
    hidden = jax.nn.silu(x @ w1)
    return hidden @ w2


@pattern(
    x=P("dp", "tp", None),
    w1=P(None, "tp"),
    w2=P("tp", None),
    out=P("dp", "tp", None),
)
def sequence_windows(x, w1, w2):
    hidden = jax.nn.silu(x @ w1)
    return hidden @ w2


@pattern(x=P("dp", "tp", None), w=P(None, None), out=P("dp", "tp", None))
def linear_merged(x, w):
    return x @ w.T


@pattern(
    x=P("dp", None, None),
    w1=P(None, "dp", "tp"),
    w2=P(None, "tp", "dp"),
    out=P("dp", None, None),
)
def layers_fsdp_tp(x, w1, w2):
    def layer(x, w):
        up, down = w
        hidden = jax.nn.silu(x @ up)
        x = pin(x + hidden @ down, "dp", None, None)
        return x, None

    return jax.lax.scan(layer, x, (w1, w2))[0]


@pattern(
    x=P("dp", "tp", None),
    w1=P(None, "dp", "tp"),
    w2=P("dp", "tp", None),
    out=P("dp", "tp", None),
)
def sequence_windows_axes(x, w1, w2):
    tokens = x.reshape(-1, x.shape[2])
    hidden = jax.nn.silu(tokens @ w1.reshape(x.shape[2], -1))
    return (hidden @ w2.reshape(-1, x.shape[2])).reshape(x.shape)
