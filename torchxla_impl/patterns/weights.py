"""Weights: compressed, adapted, and their gradients."""

import torch

from torchxla_impl.patterns.pattern import pattern


@pattern(x=("dp", None), w=("dp", None), scale=(None,), out=("dp", None))
def weight_int8(x, w, scale):
    return (x @ w.to(x.dtype)) * scale


@pattern(x=("dp", None), w=("dp", None), scale=(None,), out=("dp", None))
def weight_int8_scaled(x, w, scale):
    return x @ (w.to(x.dtype) * scale)


@pattern(
    x=(None, None),
    w=(None, "tp"),
    a=(None, None),
    b=(None, "tp"),
    out=(None, "tp"),
)
def lora_columns(x, w, a, b):
    return x @ w + (x @ a) @ b


@pattern(
    x=(None, None),
    w=(None, "tp"),
    a=(None, "tp"),
    b=(None, "tp"),
    out=(None, "tp"),
)
def lora_rank(x, w, a, b):
    return x @ w + (x @ a) @ b


@pattern(
    x=(None, "tp"),
    w=("tp", None),
    a=("tp", None),
    b=(None, None),
    out=(None, None),
)
def lora_rows(x, w, a, b):
    return x @ w + (x @ a) @ b


@pattern(
    x=(None, "tp"),
    w1=("tp", None),
    w2=("tp", None),
    out=((None, None), (None, None)),
)
def sums_joined(x, w1, w2):
    return x @ w1, x @ w2


@pattern(x=("dp", "cp", None), g=("dp", "cp", None), out=("dp", None))
def gradient_scattered(x, g):
    return torch.einsum("bsd,bsf->df", x, g)


@pattern(x=("dp", "cp", None), g=("dp", "cp", None), out=("dp", "cp"))
def gradient_two_dims(x, g):
    return torch.einsum("bsd,bsf->df", x, g)


@pattern(ids=("dp", "cp"), g=("dp", "cp", None), out=(None, None))
def embedding_gradient(ids, g):
    # What autograd makes of F.embedding; no word is a padding.
    return torch.ops.aten.embedding_dense_backward(g, ids.long(), 8192, -1, False)
