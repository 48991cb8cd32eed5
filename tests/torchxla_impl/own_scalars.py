"""What is said of scalar tensors, printed line by line: run by test_own_scalars.py in a process of its own."""

import os
import sys
from pathlib import Path

if sys.argv[1] == "own":
    from torchxla_impl.own import start
else:
    from torchxla_impl.process.start import start

start(num_devices=8)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

from torchxla_impl.own import program  # noqa: E402

MESH = xs.Mesh(np.arange(8), (2, 4), ("data", "tensor"))
DEVICE = torch_xla.device()


def split(tensor, *dims):
    xs.mark_sharding(tensor, MESH, dims)
    return tensor


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.bfloat16).to(DEVICE)


cache, new = split(zeros(8, 1024, 64), "data", "tensor", None), split(zeros(8, 1, 64), "data", None, None)


def write_cache(at):
    return split(cache.index_copy(1, at.reshape(1), new), "data", "tensor", None)


def results(name, *outputs):
    lowered = program(*outputs)
    Path(sys.argv[2], f"{name}.hlo").write_bytes(lowered)
    print(f"{name}: {list(lowered.notes)}")


results("five", write_cache(torch.tensor(5).to(DEVICE)))
results("one", write_cache(torch.tensor(1).to(DEVICE)))
results("on the device", write_cache(torch.tensor(0, device=DEVICE)))
results("two", write_cache(torch.tensor(1).to(DEVICE)) * torch.tensor(-1.0).to(device=DEVICE))
results("of one element", write_cache(torch.tensor([1]).to(DEVICE)))
results("literals", cache * 2.5 + 1 - 0)
unused = torch.tensor(1).to(DEVICE)
results("unused", cache + cache)
results("made there", cache * torch.ones((), device=DEVICE, dtype=torch.bfloat16))
scale = torch.nn.Parameter(torch.tensor(1.0))
results("a buffer", cache * torch.nn.ParameterList([scale]).to(DEVICE)[0])
sys.stdout.flush()
# All is said; taking torch_xla down again would cost more than a second.
os._exit(0)
