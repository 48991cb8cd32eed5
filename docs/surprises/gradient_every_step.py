"""PyTorch/XLA: gradients are accumulated over four steps, and summed over devices in each of them (pytorch/xla#5760).

Symptom: SPMD gradient accumulation does not reduce communication; all-reduce in every step; no_sync has no effect

Asked: data parallel training, where the gradients of four microbatches are added up before the optimizer's step, one
graph a microbatch (`torch_xla.sync()` after each).

Why: between two graphs a gradient is a tensor like any other, whole on each device.  A sum over some of the batch has
no split that could be marked, so it cannot wait: what leaves a graph has been summed.  The table below is of one
microbatch of four.

Instead: all four in one graph, and `sync` once.  The compiler adds the four on each device first, and sums them over
devices together: as much as one alone.
"""

from torchxla_impl.own import program, start

start(num_devices=8, autograd=True)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

AXES = {"data": 8}
MESH = xs.Mesh(np.arange(8), (8,), ("data",))


def split(shape, *dims):
    tensor = torch.zeros(shape).to(torch_xla.device())
    xs.mark_sharding(tensor, MESH, dims)
    return tensor


def accumulated(microbatches):
    weight = split((512, 512), None, None).requires_grad_()
    for _ in range(microbatches):
        torch.tanh(split((64, 512), "data", None) @ weight).sum().backward()
    return program(weight.grad)


def surprising():
    return accumulated(1)


def instead():
    return accumulated(4)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
