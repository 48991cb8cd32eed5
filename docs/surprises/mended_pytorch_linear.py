"""PyTorch/XLA, `nn.Linear`: reports of surprises that this compiler does not emit any more.

Symptom: nn.Linear flattens the batch; sharding lost after linear; XLAPatchedLinear, apply_xla_patch_to_nn_linear

PyTorch makes of `linear` on a tensor of three dims a `view`, a matmul of two dims, and a `view`.  With sequences split
over one axis and positions over another, the merged dim had no split that the partitioner knew, and activations were
gathered or came out whole; so PyTorch/XLA got a patch that makes it an `einsum` (pytorch/xla#5491,
pytorch/xla#8739).  Now the split goes through the `view`, forward and backward: only the gradient is summed, as by an
`einsum`.  (A matmul of four dims still merges batch and heads, and that still gathers:
[pytorch_matmul.py](pytorch_matmul.py).)
"""

from torchxla_impl.own import program, start

start(num_devices=8, autograd=True)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

AXES = {"data": 2, "seq": 4}
MESH = xs.Mesh(np.arange(8), tuple(AXES.values()), tuple(AXES))


def marked(tensor, *dims):
    xs.mark_sharding(tensor, MESH, dims)
    return tensor


def split(shape, *dims):
    return marked(torch.zeros(shape, dtype=torch.bfloat16).to(torch_xla.device()), *dims)


def two_layers(features):
    weight = split((features, features), None, None).requires_grad_()
    x = split((8, 1024, features), "data", "seq", None)
    hidden = torch.relu(torch.nn.functional.linear(x, weight))
    return weight, marked(torch.nn.functional.linear(hidden, weight), "data", "seq", None)


def forward():
    return program(two_layers(512)[1])


def backward():
    weight, y = two_layers(512)
    torch.tanh(y).sum().backward()
    return program(weight.grad)


if __name__ == "__main__":
    from compare import collectives

    for made in (forward, backward):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
