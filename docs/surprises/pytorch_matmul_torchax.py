"""PyTorch on JAX (torchax): the same matmul of 4-D tensors emits the same gathers.

Asked: the attention of [pytorch_matmul.py](pytorch_matmul.py), traced by JAX through torchax and partitioned by Shardy:
neither PyTorch/XLA nor GSPMD has a part in it.

Why: torchax implements the operations that PyTorch's decomposition leaves, `view` and `bmm` among them.  Batch and
heads are merged before JAX sees the program, by a `matmul` as by `scaled_dot_product_attention`.

Instead: `einsum`, which torchax hands to JAX whole, or JAX's own attention instead of PyTorch's
(`env.override_op_definition` replaces it in a model that is not your own: [witnesses](../witnesses.md)).

Symptom: unexpected all-gather of the cache; attention gathers its heads; `scaled_dot_product_attention` communicates
"""

import jax
import torch
import torchax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from torchax.interop import jax_view, torch_view

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))
SPLIT = NamedSharding(MESH, P("data", "model", None, None))


def lowered(attend, *, sequences=4):
    def run(*arrays):
        with torchax.default_env(), torch.no_grad():
            return jax_view(attend(*torch_view(arrays)))

    shapes = (sequences, 8, 1, 128), (sequences, 8, 1024, 128), (sequences, 8, 1024, 128)
    arrays = [jax.ShapeDtypeStruct(shape, "bfloat16", sharding=SPLIT) for shape in shapes]
    return jax.jit(run, out_shardings=SPLIT).trace(*arrays).lower(lowering_platforms=("tpu",))


def matmul(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v


def einsum(q, k, v):
    shares = torch.softmax(torch.einsum("bnqh,bnkh->bnqk", q, k), -1)
    return torch.einsum("bnqk,bnkh->bnqh", shares, v)


def attend(q, k, v):
    """JAX's own, which wants `[batch seq heads head_dim]`."""
    q, k, v = (x.swapaxes(1, 2) for x in jax_view((q, k, v)))
    return torch_view(jax.nn.dot_product_attention(q, k, v).swapaxes(1, 2))


def surprising():
    return lowered(matmul)


def surprising_sdpa():
    return lowered(torch.nn.functional.scaled_dot_product_attention)


def instead():
    return lowered(einsum)


def instead_jax_attention():
    return lowered(attend)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_sdpa, instead, instead_jax_attention):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
