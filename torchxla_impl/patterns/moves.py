"""One tensor, moved from one split to another."""

from torchxla_impl.patterns.pattern import pattern


@pattern(x=(None, "tp"), out=(None, None))
def move_gather(x):
    return x * 2


@pattern(x=(None, None), out=(None, "tp"))
def move_slice(x):
    return x * 2


@pattern(x=("tp", None), out=(None, "tp"))
def move_exchange(x):
    return x * 2


@pattern(x=("tp", None), out=(None,))
def move_sum(x):
    return x.sum(0)


@pattern(x=("tp", None, None), out=("tp", None))
def move_sum_scatter(x):
    return x.sum(0)


@pattern(x=("tp", None, None), out=("tp", None))
def move_sum_few(x):
    return x.sum(0)
