"""One matmul, cut in each way."""

from torchxla_impl.patterns.pattern import pattern


@pattern(x=("tp", None), w=(None, None), out=("tp", None))
def matmul_rows(x, w):
    return x @ w


@pattern(x=(None, None), w=(None, "tp"), out=(None, "tp"))
def matmul_columns(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=("tp", None), out=(None, None))
def matmul_contracting(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=("tp", None), out=("tp", None))
def matmul_scattered(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=(None, None), out=(None, None))
def matmul_one_side(x, w):
    return x @ w


@pattern(x=("tp", None), w=(None, "tp"), out=("tp", None))
def matmul_same_axis(x, w):
    return x @ w


@pattern(x=("dp", None), w=(None, "tp"), out=("dp", "tp"))
def matmul_two_axes(x, w):
    return x @ w


@pattern(x=("dp", None), g=("dp", None), out=(None, None))
def matmul_gradient(x, g):
    return x.T @ g


@pattern(x=("dp", "tp"), w=("tp", "dp"), out=("dp", None))
def matmul_both_agree(x, w):
    return x @ w


@pattern(x=("dp", "tp"), w=("dp", "tp"), out=("dp", "tp"))
def matmul_both_axes(x, w):
    return x @ w
