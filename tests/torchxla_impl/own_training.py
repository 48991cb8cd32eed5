"""A training step in PyTorch/XLA, with autograd off, then on: run by test_own_training.py in a process of its own."""

import os
import sys
from pathlib import Path

from torchxla_impl.own import program, start

start(num_devices=8)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

MESH = xs.Mesh(np.arange(8), (2, 4), ("data", "tensor"))


def split(tensor, *dims):
    xs.mark_sharding(tensor, MESH, dims)
    return tensor


def forward():
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048, bias=False), torch.nn.ReLU(), torch.nn.Linear(2048, 512, bias=False)
    ).to(torch_xla.device())
    split(model[0].weight, "tensor", None)
    split(model[2].weight, None, "tensor")
    return model, model(split(torch.zeros(64, 512).to(torch_xla.device()), "data", None)).square().mean()


print(forward()[1].requires_grad)
start(num_devices=8, autograd=True)
model, loss = forward()
print(loss.requires_grad)
loss.backward()
gradients = split(model[0].weight.grad, "tensor", None), split(model[2].weight.grad, None, "tensor")
Path(sys.argv[1]).write_bytes(program(loss, *gradients))
sys.stdout.flush()
# All is said; taking torch_xla down again would cost more than a second.
os._exit(0)
