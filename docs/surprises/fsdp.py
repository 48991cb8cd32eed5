"""PyTorch/XLA: fully sharded weights, and it is the activations that are gathered (pytorch/xla#6778).

Asked: two layers whose weights are split over `fsdp`, as the batch is; no pin in between.

Why: a matmul of a split batch and a split weight needs one of them whole, and the partitioner takes the smaller.  With
1,024 tokens that is the batch: every device then computes its features of all sequences, and the next layer gathers
those, too.  It is fewer bytes here; but each device holds the activations of the whole batch, which FSDP was to avoid,
and they grow with the batch, as weights don't.

Instead: mark the result of every layer as split over the batch.  Then the weights are gathered.

Symptom: activations gathered instead of weights; FSDP that does not save memory; all-gather of the batch
"""

from torchxla_impl.own import program, start

start(num_devices=8)  # before anything of torch is imported

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


def layers(pin):
    x, up = split((8, 128, 1024), "fsdp", None, None), split((4096, 1024), "fsdp", None)
    down = split((1024, 4096), "fsdp", None)
    hidden = pin(torch.einsum("bsd,fd->bsf", x, up))
    return program(pin(torch.einsum("bsf,df->bsd", torch.relu(hidden), down)))


def surprising():
    return layers(lambda tensor: tensor)


def instead():
    return layers(lambda tensor: marked(tensor, "fsdp", None, None))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
