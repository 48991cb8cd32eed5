"""Whole blocks: a pipeline's shift, a layer, experts."""

import torch
import torch.nn.functional as F  # noqa: N812

from torchxla_impl.patterns.pattern import pattern, pin

STATE = ("pp", None, None)


@pattern(state=STATE, out=STATE)
def pipeline_shift(state):
    return F.pad(state, (0, 0, 0, 0, 1, 0))[:4]


@pattern(state=STATE, out=STATE)
def pipeline_roll(state):
    return torch.roll(state, 1, dims=0)


@pattern(x=("dp", None, None), wqkv=(None, None, "tp", None), wo=("tp", None, None),
         w1=(None, "tp"), w2=("tp", None), out=("dp", None, None))  # fmt: skip
def layer_dp_tp(x, wqkv, wo, w1, w2):
    q, k, v = torch.einsum("bsd,dcnh->cbsnh", x, wqkv)
    scores = torch.einsum("bsnh,btnh->bnst", q, k)
    mixed = torch.einsum("bnst,btnh->bsnh", torch.softmax(scores, dim=-1), v)
    x = pin(x + torch.einsum("bsnh,nhd->bsd", mixed, wo), "dp", None, None)
    hidden = F.silu(x @ w1)
    return x + hidden @ w2


@pattern(x=(None, "tp", None), wqkv=(None, None, "tp", None), wo=("tp", None, None),
         w1=(None, "tp"), w2=("tp", None), out=(None, "tp", None))  # fmt: skip
def layer_sequence(x, wqkv, wo, w1, w2):
    whole = pin(x, None, None, None)
    q, k, v = torch.einsum("bsd,dcnh->cbsnh", whole, wqkv)
    scores = torch.einsum("bsnh,btnh->bnst", q, k)
    mixed = torch.einsum("bnst,btnh->bsnh", torch.softmax(scores, dim=-1), v)
    x = x + pin(torch.einsum("bsnh,nhd->bsd", mixed, wo), None, "tp", None)
    whole = pin(x, None, None, None)
    hidden = F.silu(whole @ w1)
    return x + hidden @ w2


@pattern(sent=("ep", None, None, None), out=(None, "ep", None, None))
def expert_dispatch(sent):
    return sent


@pattern(x=("ep", None, None), seats=("ep", None, None, None), w1=("ep", None, "tp"), w2=("ep", "tp", None),
         out=("ep", None, None))  # fmt: skip
def moe_layer(x, seats, w1, w2):
    sent = pin(torch.einsum("gtec,gtd->egcd", seats, x), None, "ep", None, None)
    sent = pin(sent, "ep", None, None, None)
    hidden = F.silu(torch.einsum("egcd,edf->egcf", sent, w1))
    made = pin(torch.einsum("egcf,efd->egcd", hidden, w2), "ep", None, None, None)
    back = pin(made, None, "ep", None, None)
    return torch.einsum("gtec,egcd->gtd", seats, back)
