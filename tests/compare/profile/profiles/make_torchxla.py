"""Record a small program of torch_xla on 8 CPU devices: `python make_torchxla.py FOLDER`.

Over data=2, tensor=4: three layers with an all-reduce over tensor in each, and after the second one over data.  The
matrices are so large that XLA:CPU multiplies them on several threads.
"""

import os
import sys

os.environ |= {"PJRT_DEVICE": "CPU", "CPU_NUM_DEVICES": "8"}

import numpy as np
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.profiler as xp
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr

xr.use_spmd()
mesh = xs.Mesh(np.arange(8), (2, 4), ("data", "tensor"))
device = torch_xla.device()
batch = torch.ones(256, 256).to(device)
xs.mark_sharding(batch, mesh, ("data", None))
layers = [(torch.ones(256, 256).to(device), torch.ones(256, 256).to(device)) for _ in range(3)]
for up, down in layers:
    xs.mark_sharding(up, mesh, (None, "tensor"))
    xs.mark_sharding(down, mesh, ("tensor", None))


def step():
    x = batch
    for number, (up, down) in enumerate(layers):
        x = (x @ up) @ down
        if number == 1:
            x = x - x.sum(0, keepdim=True)
    torch_xla.sync()
    return x.cpu()


step()
xm.wait_device_ops()
server = xp.start_server(9013)
xp.start_trace(sys.argv[1])
for number in range(3):
    with torch_xla._XLAC.profiler.TraceMe("train", _r=1, step_num=number):
        step()
xp.stop_trace()
