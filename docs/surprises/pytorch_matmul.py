"""PyTorch: a matmul of 4-D tensors gathers their split heads, in decode the whole cache.

Asked: attention of one new token over a cache, `softmax(q @ k.mT) @ v`, with sequences split over `data` and heads over
`model`.  Heads know nothing of each other, so nothing needs to be sent.

Why: PyTorch decomposes such a matmul into `expand`, `view`, `bmm` and `view` (`surprising_by_hand`): batch and heads
become one dim.  The first device has heads 0 and 1 of sequences 0 and 1, rows 0, 1, 8 and 9 of 32: no contiguous block,
and so no split of that dim.  The partitioner keeps the split of the batch, and gathers q, all keys and all values over
`model`, for each token anew.  `scaled_dot_product_attention` is made of the same matmuls: the unmodified Llama of
Hugging Face emits these gathers in every layer ([witnesses](../witnesses.md)).

Instead: `einsum`, which PyTorch/XLA lowers to a `dot` with two batch dims.  `bmm` gathers nothing, either, where what
a device has is one block of the merged dim: with the split dims first, or with one sequence on each device, which is
why a test with a small batch does not show it.  Each form by itself: the gallery, from
[attention-matmul](../gallery/attention-matmul.html) on.

Symptom: unexpected all-gather of the cache; attention gathers its heads; `scaled_dot_product_attention` communicates
"""

from torchxla_impl.own import program, start

start(num_devices=8)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

AXES = {"data": 2, "model": 4}
MESH = xs.Mesh(np.arange(8), tuple(AXES.values()), tuple(AXES))


def split(tensor):
    xs.mark_sharding(tensor, MESH, ("data", "model", None, None))
    return tensor


def attention(attend, *, sequences=4):
    shapes = (sequences, 8, 1, 128), (sequences, 8, 1024, 128), (sequences, 8, 1024, 128)
    q, k, v = (split(torch.zeros(shape, dtype=torch.bfloat16).to(torch_xla.device())) for shape in shapes)
    return program(split(attend(q, k, v)))


def matmul(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v


def merged(q, k, v):
    def multiply(a, b):  # as `@` does it itself
        return torch.bmm(a.flatten(0, 1), b.flatten(0, 1)).unflatten(0, a.shape[:2])

    return multiply(torch.softmax(multiply(q, k.mT), -1), v)


def einsum(q, k, v):
    shares = torch.softmax(torch.einsum("bnqh,bnkh->bnqk", q, k), -1)
    return torch.einsum("bnqk,bnkh->bnqh", shares, v)


def turned(q, k, v):
    q, k, v = (x.unflatten(0, (2, -1)).transpose(1, 2) for x in (q, k, v))  # [2, heads, sequences/2, …]
    return matmul(q, k, v).transpose(1, 2).flatten(0, 1)


def surprising():
    return attention(matmul)


def surprising_by_hand():
    return attention(merged)


def instead():
    return attention(einsum)


def instead_heads_first():
    return attention(turned)


def instead_one_sequence():
    return attention(matmul, sequences=2)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_by_hand, instead, instead_heads_first, instead_one_sequence):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
