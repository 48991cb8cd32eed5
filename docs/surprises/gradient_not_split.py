"""PyTorch/XLA: a weight is marked as split, its gradient is not (pytorch/xla#8678, pytorch/xla#8883).

Symptom: mark_sharding does not shard the gradient; all-reduce instead of reduce-scatter; OOM in the backward pass, scan

Asked: the gradient of a weight whose rows are split over `fsdp`, as the batch is; the graph ends there, as it does
where gradients of several steps are added up, or in the backward pass of a scan over layers.

Why: each device has a sum over its part of the batch, so the sums are added.  `mark_sharding` marks the tensor it is
given, and the gradient is another.  If nothing says in which split it is wanted, it is made whole on all: twice the
bytes of its parts, and memory for all of it.  In a step that goes on to update the split weight, the split comes from
there.

Instead: mark the gradient as well.  (`xs.mark_sharding_with_gradients` does that for activations.)
"""

from torchxla_impl.own import program, start

start(num_devices=8, autograd=True)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

AXES = {"fsdp": 8}
MESH = xs.Mesh(np.arange(8), (8,), ("fsdp",))


def marked(tensor, *dims):
    xs.mark_sharding(tensor, MESH, dims)
    return tensor


def split(shape, *dims):
    return marked(torch.zeros(shape, dtype=torch.bfloat16).to(torch_xla.device()), *dims)


def gradient(sequences):
    x, weight = split((sequences, 128, 1024), "fsdp", None, None), split((4096, 1024), "fsdp", None).requires_grad_()
    hidden = marked(torch.einsum("bsd,fd->bsf", x, weight), "fsdp", None, None)
    torch.tanh(hidden).sum().backward()
    return weight.grad


def surprising():
    return program(gradient(8))


def instead():
    return program(marked(gradient(8), "fsdp", None))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
