"""What nobody has said how to split, and what the partitioner makes of it: pairs on either side of a border."""

import torch
import torch.nn.functional as F  # noqa: N812

from torchxla_impl.patterns.pattern import pattern, pin


@pattern(a=("dp", None), b=(None, "tp"), out=(None,))
def decide_both_fit(a, b):
    return torch.sum(a + b, dim=0, dtype=a.dtype)


@pattern(a=("dp", None), b=("tp", None), out=(None,))
def decide_both_clash(a, b):
    return torch.sum(a + b, dim=0, dtype=a.dtype)


@pattern(a=("tp", None), b=(None, "tp"), out=(None,))
def decide_first_rows(a, b):
    return torch.sum(a + b, dim=0, dtype=a.dtype)


@pattern(a=("tp", None), b=(None, "tp"), out=(None,))
def decide_first_columns(a, b):
    return torch.sum(b + a, dim=0, dtype=a.dtype)


@pattern(a=("tp", None), b=(None, "tp"), out=(None,))
def decide_used_once(a, b):
    return torch.sum(torch.tanh(b) + a, dim=0, dtype=a.dtype)


@pattern(a=("tp", None), b=(None, "tp"), out=(None,))
def decide_used_twice(a, b):
    return torch.sum(b * b + a, dim=0, dtype=a.dtype)


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def decide_tokens_few(x, w1, w2):
    return F.silu(x @ w1) @ w2


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def decide_tokens_many(x, w1, w2):
    return F.silu(x @ w1) @ w2


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    r=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def decide_tokens_joined(x, w1, r, w2):
    return F.silu(x @ w1 + r) @ w2


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def decide_looks_ahead(x, w1, w2):
    return torch.tanh(x @ w1) @ w2


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w3=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def decide_gated(x, w1, w3, w2):
    return (F.silu(x @ w1) * (x @ w3)) @ w2


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w3=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def decide_gated_pinned(x, w1, w3, w2):
    hidden = F.silu(x @ w1) * (x @ w3)
    return pin(hidden, None, "tp") @ w2


@pattern(x=("tp", None), w=(None, "tp"), out=("tp", None))
def decide_wanted_rows(x, w):
    return x @ w


@pattern(x=("tp", None), w=(None, "tp"), out=(None, "tp"))
def decide_wanted_columns(x, w):
    return x @ w


@pattern(x=(None, None), w=(None, "tp"), out=(None, None))
def decide_wanted_whole(x, w):
    return x @ w


@pattern(x=(None, None), w=(None, "tp"), out=(None, None))
def decide_wanted_later(x, w):
    return torch.tanh(x @ w)


@pattern(x=("tp", None), w=("tp", None), out=("tp", None))
def decide_order_kept(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=("tp", None), out=("tp", None))
def decide_order_summed(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=(None, None), out=("tp", None))
def decide_order_moved(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=(None, None), out=(None, None))
def decide_sum_narrow(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=(None, None), out=(None, None))
def decide_sum_wide(x, w):
    return x @ w


@pattern(x=(None, "tp"), w=(None, None), out=(None, None))
def decide_sum_made(x, w):
    return x @ (w * 2)


@pattern(
    x=(None, "tp", None),
    w=(None, None),
    out=(None, "tp", None, None),
)
def decide_view_heads(x, w):
    b, s, _ = x.shape
    y = F.linear(x, w)
    return y.view(b, s, 8, 128).transpose(1, 2)


@pattern(
    x=(None, "tp", None),
    w=(None, None),
    out=(None, None, None, "tp"),
)
def decide_view_width(x, w):
    b, s, _ = x.shape
    y = F.linear(x, w)
    return y.view(b, s, 8, 128).transpose(1, 2)


@pattern(
    x=(None, "tp", None),
    w=(None, None),
    out=(None, "tp", None, None),
)
def decide_view_pinned(x, w):
    b, s, _ = x.shape
    y = F.linear(x, w)
    y = pin(y, None, "tp", None)
    return y.view(b, s, 8, 128).transpose(1, 2)


@pattern(
    q=(None, None, None, "tp"),
    k=(None, None, None, "tp"),
    v=(None, None, None, "tp"),
    out=(None, None, None, "tp"),
)
def gqa_head_dim(q, k, v):
    scores = torch.einsum("bkgh,bskh->bkgs", q, k).float()
    shares = torch.softmax(scores, dim=-1).to(v.dtype)
    return torch.einsum("bkgs,bskh->bkgh", shares, v)


@pattern(
    q=(None, None, None, "tp"),
    k=(None, None, None, "tp"),
    v=(None, None, None, "tp"),
    out=(None, None, None, None),
)
def gqa_head_dim_whole(q, k, v):
    scores = torch.einsum("bkgh,bskh->bkgs", q, k).float()
    shares = torch.softmax(scores, dim=-1).to(v.dtype)
    return torch.einsum("bkgs,bskh->bkgh", shares, v)
