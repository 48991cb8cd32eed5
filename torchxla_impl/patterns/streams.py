"""What runs between the blocks: sequence parallelism with no pins, merged dims, weights split for storage."""

import torch.nn.functional as F  # noqa: N812

from torchxla_impl.decoder.scan import scan
from torchxla_impl.patterns.pattern import pattern, pin


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def sequence_unpinned(x, w1, w2):
    hidden = F.silu(x @ w1)
    return hidden @ w2


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def sequence_weights(x, w1, w2):
    hidden = F.silu(x @ w1)
    return hidden @ w2


@pattern(
    x=("dp", "tp", None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("dp", "tp", None),
)
def sequence_windows(x, w1, w2):
    hidden = F.silu(x @ w1)
    return hidden @ w2


@pattern(x=("dp", "tp", None), w=(None, None), out=("dp", "tp", None))
def linear_merged(x, w):
    return F.linear(x, w)


@pattern(
    x=("dp", None, None),
    w1=(None, "dp", "tp"),
    w2=(None, "tp", "dp"),
    out=("dp", None, None),
)
def layers_fsdp_tp(x, w1, w2):
    def layer(x, w):
        up, down = w
        hidden = F.silu(x @ up)
        x = pin(x + hidden @ down, "dp", None, None)
        return x, x[:0]  # scan wants something of each turn: nothing of x

    return scan(layer, x, (w1, w2))[0]


@pattern(
    x=("dp", "tp", None),
    w1=(None, "dp", "tp"),
    w2=("dp", "tp", None),
    out=("dp", "tp", None),
)
def sequence_windows_axes(x, w1, w2):
    tokens = x.reshape(-1, x.shape[2])
    hidden = F.silu(tokens @ w1.reshape(x.shape[2], -1))
    return (hidden @ w2.reshape(-1, x.shape[2])).reshape(x.shape)
