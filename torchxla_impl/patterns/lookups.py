"""Lookups, losses and statistics: what looks at places of a split dim, or sums over it."""

import torch
import torch.nn.functional as F  # noqa: N812

from torchxla_impl.patterns.pattern import pattern


@pattern(table=("tp", None), ids=("tp",), out=("tp", None))
def embedding_ids(table, ids):
    return F.embedding(ids, table)


@pattern(x=(None, "tp", None), at=(), out=(None, None))
def read_traced(x, at):
    return x.index_select(1, at.long()[None])[:, 0]


@pattern(logits=(None, "tp"), labels=(None,), out=(None,))
def gather_along(logits, labels):
    return torch.gather(logits, 1, labels.long()[:, None])[:, 0]


@pattern(
    x=(None, "tp"),
    scale=("tp",),
    shift=("tp",),
    out=(None, "tp"),
)
def layernorm_width(x, scale, shift):
    return F.layer_norm(x, (x.shape[-1],), scale, shift)


@pattern(logits=(None, "tp"), labels=(None,), out=(None,))
def cross_entropy(logits, labels):
    return F.cross_entropy(logits, labels.long(), reduction="none")


@pattern(x=(None, None), w=(None, "tp"), out=(None, "tp"))
def split_three(x, w):
    q, k, v = (x @ w).chunk(3, dim=-1)
    return q * k + v


@pattern(
    x=("dp", None),
    seats=("dp", None, None),
    w1=("ep", None, None),
    w2=("ep", None, None),
    out=("dp", None),
)
def dispatch_sum(x, seats, w1, w2):
    sent = torch.einsum("tec,td->ecd", seats, x)
    hidden = F.silu(torch.einsum("ecd,edf->ecf", sent, w1))
    made = torch.einsum("ecf,efd->ecd", hidden, w2)
    return torch.einsum("tec,ecd->td", seats, made)


@pattern(x=("dp", None), scores=("dp",), out=("dp", None))
def sort_rows(x, scores):
    return x[torch.argsort(scores)]
