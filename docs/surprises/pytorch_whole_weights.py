"""PyTorch/XLA: FSDP keeps all gathered weights until the backward pass (pytorch/xla#6379).

Asked: a training step of three layers whose weights are split over `fsdp`, as the batch is; every layer's result is
marked, and so are the gradients.

Why: the trace has forward and backward pass in one graph, and in both the same weight stands next to a matmul.  The
partitioner gathers it once, at the matmul of the forward pass, and uses it twice; in between it is there whole, for
all layers at the same time.  In the thread somebody turns it off inside the partitioner (`cache_all_gather`), which is
no option of PyTorch/XLA.  (What travels is `bf16`, though the weights are `f32`: a TPU's matmul takes `bf16` by
default, and the compiler rounds before it sends.)

Instead: checkpoint each layer (`torch_xla.utils.checkpoint`).  Its backward pass begins with a barrier, behind which
nothing of the forward pass is known, so the weights are gathered again, and the layer is computed again.  The JAX
program of the same kind has finer means: [whole_weights](#whole_weights).

Symptom: FSDP runs out of memory in the forward pass; gathered weights kept for the backward pass; weights gathered once
for forward and backward
"""

from torchxla_impl.own import program, start

start(num_devices=8, autograd=True)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402
from torch_xla.utils.checkpoint import checkpoint  # noqa: E402

AXES = {"fsdp": 8}
MESH = xs.Mesh(np.arange(8), (8,), ("fsdp",))


def split(tensor):
    xs.mark_sharding(tensor, MESH, ("fsdp", None))
    return tensor


def layer(x, weight):
    return split(torch.tanh(x @ weight.T))


def gradients(use):
    weights = [split(torch.zeros(1024, 1024).to(torch_xla.device()).requires_grad_()) for _ in range(3)]
    x = split(torch.zeros(4096, 1024).to(torch_xla.device()))
    for weight in weights:
        x = use(x, weight)
    x.sum().backward()
    return program(*(split(weight.grad) for weight in weights))


def surprising():
    return gradients(layer)


def instead():
    return gradients(lambda x, weight: checkpoint(layer, x, weight, use_reentrant=True))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
