"""Operations that only move data about: free on one device, not always on a mesh."""

import torch

from torchxla_impl.patterns.pattern import pattern


@pattern(x=(None, "tp", None), out=(None, "tp"))
def reshape_outer(x):
    t, n, h = x.shape
    return x.reshape(t, n * h)


@pattern(x=(None, None, "tp"), out=(None, "tp"))
def reshape_inner(x):
    t, n, h = x.shape
    return x.reshape(t, n * h)


@pattern(x=("tp", None), out=(None, "tp"))
def transpose_free(x):
    return x.T


@pattern(x=("tp", None), out=("tp", None))
def transpose_moved(x):
    return x.T


@pattern(a=("tp", None), b=("tp", None), out=("tp", None))
def concat_split(a, b):
    return torch.cat([a, b], dim=0)


@pattern(x=("tp", None), out=("tp", None))
def roll_split(x):
    return torch.roll(x, 1, dims=0)


@pattern(x=(None, "tp", None), out=(None, None))
def last_token(x):
    return x[:, -1]


@pattern(x=(None, "tp", None), out=(None, None))
def last_token_masked(x):
    last = torch.arange(x.shape[1], device=x.device) == x.shape[1] - 1
    return torch.where(last[:, None], x, 0).sum(1, dtype=x.dtype)


@pattern(x=(None, None), w=(None, "tp"), out=(None, "tp"))
def fused_halves(x, w):
    gate, up = (x @ w).chunk(2, dim=-1)
    return gate * up


@pattern(x=(None, None), w=(None, None, "tp"), out=(None, "tp"))
def fused_pairs(x, w):
    both = torch.einsum("td,dcf->ctf", x, w)
    return both[0] * both[1]
