"""Whole blocks: a pipeline's shift, a layer, experts."""

import torch
import torch.nn.functional as F  # noqa: N812

from torchxla_impl.patterns.pattern import pattern, pin


@pattern(state=("pp", None, None), out=("pp", None, None))
def pipeline_shift(state):
    return F.pad(state, (0, 0, 0, 0, 1, 0))[:4]


@pattern(state=("pp", None, None), out=("pp", None, None))
def pipeline_roll(state):
    return torch.roll(state, 1, dims=0)


@pattern(
    x=("dp", None, None),
    wqkv=(None, None, "tp", None),
    wo=("tp", None, None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("dp", None, None),
)
def layer_dp_tp(x, wqkv, wo, w1, w2):
    q, k, v = torch.einsum("bsd,dcnh->cbsnh", x, wqkv)
    scores = torch.einsum("bsnh,btnh->bnst", q, k)
    shares = torch.softmax(scores, dim=-1)
    mixed = torch.einsum("bnst,btnh->bsnh", shares, v)
    x = x + torch.einsum("bsnh,nhd->bsd", mixed, wo)
    x = pin(x, "dp", None, None)
    hidden = F.silu(x @ w1)
    return x + hidden @ w2


@pattern(
    x=(None, "tp", None),
    wqkv=(None, None, "tp", None),
    wo=("tp", None, None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=(None, "tp", None),
)
def layer_sequence(x, wqkv, wo, w1, w2):
    whole = pin(x, None, None, None)
    q, k, v = torch.einsum("bsd,dcnh->cbsnh", whole, wqkv)
    scores = torch.einsum("bsnh,btnh->bnst", q, k)
    shares = torch.softmax(scores, dim=-1)
    mixed = torch.einsum("bnst,btnh->bsnh", shares, v)
    mixed = torch.einsum("bsnh,nhd->bsd", mixed, wo)
    x = x + pin(mixed, None, "tp", None)
    whole = pin(x, None, None, None)
    hidden = F.silu(whole @ w1)
    return x + hidden @ w2


@pattern(sent=("ep", None, None, None), out=(None, "ep", None, None))
def expert_dispatch(sent):
    return sent


@pattern(
    x=("ep", None, None),
    seats=("ep", None, None, None),
    w1=("ep", None, "tp"),
    w2=("ep", "tp", None),
    out=("ep", None, None),
)
def moe_layer(x, seats, w1, w2):
    sent = torch.einsum("gtec,gtd->egcd", seats, x)
    sent = pin(sent, None, "ep", None, None)
    sent = pin(sent, "ep", None, None, None)
    hidden = F.silu(torch.einsum("egcd,edf->egcf", sent, w1))
    made = torch.einsum("egcf,efd->egcd", hidden, w2)
    made = pin(made, "ep", None, None, None)
    back = pin(made, None, "ep", None, None)
    return torch.einsum("gtec,egcd->gtd", seats, back)
