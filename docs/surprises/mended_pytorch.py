"""PyTorch/XLA: reports of surprising collectives that this compiler does not emit any more.

`a @ b @ c`, with the columns of b and the rows of c split over all devices, needs one sum.  It was an all-reduce over
`replica_groups={{0}}`, device 0 alone (pytorch/xla#5279): now it is over `model`, at the line of the second matmul.

Symptom: all-reduce over `replica_groups={{0}}`; all-reduce over a group of one device
"""

from torchxla_impl.own import program, start

start(num_devices=8)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

AXES = {"model": 8}
MESH = xs.Mesh(np.arange(8), (8,), ("model",))


def split(shape, *dims):
    tensor = torch.zeros(shape, dtype=torch.bfloat16).to(torch_xla.device())
    xs.mark_sharding(tensor, MESH, dims)
    return tensor


def multiply():
    a, b, c = split((64, 512), None, None), split((512, 1024), None, "model"), split((1024, 512), "model", None)
    return program(a @ b @ c)


if __name__ == "__main__":
    from compare import collectives

    print(f"{multiply.__name__}:", collectives(multiply(), axes=AXES, topology="v5e:2x4"), sep="\n")
