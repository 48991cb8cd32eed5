"""Pieces of a model: a feed-forward, an embedding, a norm, a softmax, a choice, a stack of layers."""

import torch
import torch.nn.functional as F  # noqa: N812

from torchxla_impl.decoder.scan import scan
from torchxla_impl.patterns.pattern import pattern, pin


@pattern(
    x=(None, None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=(None, None),
)
def mlp(x, w1, w2):
    hidden = F.silu(x @ w1)
    return hidden @ w2


@pattern(
    x=("tp", None),
    w1=(None, "tp"),
    w2=("tp", None),
    out=("tp", None),
)
def mlp_sequence(x, w1, w2):
    whole = pin(x, None, None)
    hidden = F.silu(whole @ w1)
    return hidden @ w2


@pattern(table=("tp", None), ids=(None,), out=(None, None))
def embedding_vocab(table, ids):
    return F.embedding(ids, table)


@pattern(table=(None, "tp"), ids=(None,), out=(None, "tp"))
def embedding_width(table, ids):
    return F.embedding(ids, table)


@pattern(x=(None, "tp"), scale=("tp",), out=(None, "tp"))
def norm_width(x, scale):
    wide = x.float()
    mean = (wide * wide).mean(-1, keepdim=True)
    return (wide * torch.rsqrt(mean + 1e-6)).to(x.dtype) * scale


@pattern(scores=(None, "tp"), out=(None, "tp"))
def softmax_split(scores):
    return torch.softmax(scores, dim=-1)


@pattern(logits=(None, "tp"), out=(None,))
def sample_greedy(logits):
    return torch.argmax(logits, dim=-1).int()


@pattern(logits=(None, "tp"), out=(None,))
def sample_top(logits):
    ids = torch.topk(logits, 8).indices
    return ids[:, -1].int()


@pattern(x=(None, None), stack=("pp", None, None), out=(None, None))
def layers_split(x, stack):
    def layer(x, w):
        return x + x @ w, x[:0]  # scan wants something of each turn: nothing of x

    return scan(layer, x, stack)[0]


@pattern(x=(None, None), stack=(None, None, "pp"), out=(None, None))
def layers_inside(x, stack):
    def layer(x, w):
        return x + x @ w, x[:0]  # scan wants something of each turn: nothing of x

    return scan(layer, x, stack)[0]
