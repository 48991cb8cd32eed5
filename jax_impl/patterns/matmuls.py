"""One matmul, cut in each way."""

from jax_impl.patterns.pattern import P, pattern


@pattern(x=P("tp", None), w=P(None, None), out=P("tp", None))
def matmul_rows(x, w):
    return x @ w


@pattern(x=P(None, None), w=P(None, "tp"), out=P(None, "tp"))
def matmul_columns(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P("tp", None), out=P(None, None))
def matmul_contracting(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P("tp", None), out=P("tp", None))
def matmul_scattered(x, w):
    return x @ w


@pattern(x=P(None, "tp"), w=P(None, None), out=P(None, None))
def matmul_one_side(x, w):
    return x @ w


@pattern(x=P("tp", None), w=P(None, "tp"), out=P("tp", None))
def matmul_same_axis(x, w):
    return x @ w


@pattern(x=P("dp", None), w=P(None, "tp"), out=P("dp", "tp"))
def matmul_two_axes(x, w):
    return x @ w


@pattern(x=P("dp", None), g=P("dp", None), out=P(None, None))
def matmul_gradient(x, g):
    return x.T @ g


@pattern(x=P("dp", "tp"), w=P("tp", "dp"), out=P("dp", None))
def matmul_both_agree(x, w):
    return x @ w


@pattern(x=P("dp", "tp"), w=P("dp", "tp"), out=P("dp", "tp"))
def matmul_both_axes(x, w):
    return x @ w
