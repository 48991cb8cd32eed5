"""Attention and its cache."""

import torch

from torchxla_impl.patterns.pattern import pattern, pin


@pattern(
    q=(None, None, "tp", None),
    k=(None, None, "tp", None),
    v=(None, None, "tp", None),
    out=(None, None, "tp", None),
)
def attention_heads(q, k, v):
    scores = torch.einsum("bsnh,btnh->bnst", q, k)
    shares = torch.softmax(scores, dim=-1)
    return torch.einsum("bnst,btnh->bsnh", shares, v)


@pattern(
    q=("dp", "tp", None, None),
    k=("dp", "tp", None, None),
    out=("dp", "tp", None, None),
)
def attention_merged(q, k):
    b, n, s, h = q.shape
    q, k = q.reshape(b * n, s, h), k.reshape(b * n, s, h)
    scores = torch.bmm(q, k.transpose(1, 2))
    return scores.reshape(b, n, s, s)


@pattern(
    q=(None, "tp", None, None),
    k=(None, "tp", None, None),
    v=(None, "tp", None, None),
    out=(None, "tp", None, None),
)
def attention_matmul(q, k, v):
    scores = q @ k.transpose(2, 3)
    shares = torch.softmax(scores, dim=-1)
    return shares @ v


@pattern(
    q=("dp", "tp", None, None),
    k=("dp", "tp", None, None),
    out=("dp", "tp", None, None),
)
def attention_one_sequence(q, k):
    b, n, s, h = q.shape
    q, k = q.reshape(b * n, s, h), k.reshape(b * n, s, h)
    scores = torch.bmm(q, k.transpose(1, 2))
    return scores.reshape(b, n, s, s)


@pattern(
    q=(None, "tp", None, None),
    k=(None, "tp", None, None),
    v=(None, "tp", None, None),
    out=(None, "tp", None, None),
)
def attention_per_sequence(q, k, v):
    def attend(q, k, v):
        shares = torch.softmax(q @ k.transpose(1, 2), dim=-1)
        return shares @ v

    return torch.stack([attend(q[i], k[i], v[i]) for i in range(len(q))])


@pattern(
    q=("dp", "tp", None, None),
    k=("dp", "tp", None, None),
    out=("dp", "tp", None, None),
)
def attention_heads_first(q, k):
    b, n, s, h = q.shape
    q, k = (x.reshape(2, b // 2, n, s, h).transpose(1, 2) for x in (q, k))  # [dp, N, B/dp, S, H]
    q, k = q.reshape(b * n, s, h), k.reshape(b * n, s, h)
    scores = torch.bmm(q, k.transpose(1, 2))
    return scores.reshape(2, n, b // 2, s, s).transpose(1, 2).reshape(b, n, s, s)


@pattern(
    x=(None, None),
    wq=(None, "tp"),
    wk=(None, "tp"),
    out=(None, "tp", None),
)
def gqa_few_heads(x, wq, wk):
    q = (x @ wq).reshape(x.shape[0], 8, 128)
    k = (x @ wk).reshape(x.shape[0], 2, 128)
    k = k.repeat_interleave(4, dim=1)
    return torch.einsum("snh,tnh->snt", q, k)


@pattern(
    cache=(None, None, "tp", None),
    new=(None, None, "tp", None),
    at=(),
    out=(None, None, "tp", None),
)
def cache_write_heads(cache, new, at):
    return cache.index_copy(1, at.long()[None], new)


@pattern(
    cache=(None, "cp", None, None),
    new=(None, None, None, None),
    at=(),
    out=(None, "cp", None, None),
)
def cache_write_positions(cache, new, at):
    return cache.index_copy(1, at.long()[None], new)


@pattern(
    q=(None, None, None),
    k=(None, "cp", None, None),
    v=(None, "cp", None, None),
    out=(None, None, None),
)
def cache_read_positions(q, k, v):
    scores = torch.einsum("bnh,btnh->bnt", q, k).float()
    shares = torch.softmax(scores, dim=-1).to(v.dtype)
    return torch.einsum("bnt,btnh->bnh", shares, v)


@pattern(
    q=(None, "cp", None, None),
    k=(None, "cp", None, None),
    v=(None, "cp", None, None),
    out=(None, "cp", None, None),
)
def context_gather(q, k, v):
    k = pin(k, None, None, None, None)
    v = pin(v, None, None, None, None)
    scores = torch.einsum("bsnh,btnh->bnst", q, k)
    shares = torch.softmax(scores, dim=-1)
    return torch.einsum("bnst,btnh->bsnh", shares, v)


@pattern(
    q=(None, "cp", None, None),
    k=(None, "cp", None, None),
    v=(None, "cp", None, None),
    out=(None, "cp", None, None),
)
def window_masked(q, k, v):
    places = torch.arange(q.shape[1], device=q.device)
    back = places[:, None] - places
    scores = torch.einsum("bsnh,btnh->bnst", q, k)
    scores = scores.masked_fill((back < 0) | (back >= 128), float("-inf"))
    shares = torch.softmax(scores, dim=-1)
    return torch.einsum("bnst,btnh->bsnh", shares, v)


@pattern(
    q=(None, "cp", None, None),
    k=(None, "cp", None, None),
    v=(None, "cp", None, None),
    out=(None, "cp", None, None),
)
def window_blocks(q, k, v):
    def with_before(x):  # each block, and the one before it
        before = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1]
        return torch.cat([before, x], dim=2)

    shape = q.shape
    q, k, v = (x.reshape(shape[0], -1, 128, *shape[2:]) for x in (q, k, v))
    k, v = with_before(k), with_before(v)  # the mask within two blocks is left out
    shares = torch.softmax(torch.einsum("bmsnh,bmtnh->bmnst", q, k), dim=-1)
    return torch.einsum("bmnst,bmtnh->bmsnh", shares, v).reshape(shape)
