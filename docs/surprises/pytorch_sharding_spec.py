"""PyTorch/XLA: after the first layer no tensor says that it is split, and all of them are (pytorch/xla#7846).

Asked: two linear layers; the batch is marked as split over `data`, the weights are not.  `_get_xla_sharding_spec` of
the input is as marked; of the first layer's result, and of every later one, it is empty.  Do they run on all of the
batch everywhere?

Why: the spec of a tensor is what somebody has marked.  How the rest is split the partitioner finds out when the program
is compiled, and nobody tells the tensors.  Nothing is sent, as one hopes; but nothing would be sent, either, if all
devices did all of the work (`surprising_whole`, where the batch is not marked).  The two differ by the sizes in the
compiled program, `f32[128,256]` for the first layer's result or `f32[1024,256]`, and by a note below the table:
*nothing is split: each of the 8 devices has every argument whole, and does all of the work*.

Instead: nothing needs to be changed.  To have it said, mark the result (`instead`): the spec is there, the program is
the same, and a wrong guess would be a collective in the table.

Symptom: sharding spec of an activation is empty; are the later layers replicated?; 0 collectives and no speedup
"""

from torchxla_impl.own import program, start

start(num_devices=8)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

AXES = {"data": 8}
MESH = xs.Mesh(np.arange(8), (8,), ("data",))


def split(tensor):
    xs.mark_sharding(tensor, MESH, ("data", None))
    return tensor


def layers(mark_input, mark_result):
    first, second = torch.nn.Linear(128, 256), torch.nn.Linear(256, 16)
    model = torch.nn.Sequential(first, torch.nn.ReLU(), second).to(torch_xla.device())
    x = torch.zeros(1024, 128).to(torch_xla.device())
    if mark_input:
        split(x)
    y = model(x)
    return program(split(y) if mark_result else y)


def surprising():
    return layers(True, False)


def surprising_whole():
    return layers(False, False)


def instead():
    return layers(True, True)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_whole, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
