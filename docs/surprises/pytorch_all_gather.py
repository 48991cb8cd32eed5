"""PyTorch/XLA: `xm.all_gather` under SPMD gathers nothing (pytorch/xla#9519).

Asked: a tensor whose rows are split over `batch`, to be made whole by `xm.all_gather` over the pairs of devices that
share a column of the mesh.

Why: under SPMD the program is that of one big device; there is one replica, of eight partitions.  `xm.all_gather` is an
operation between replicas.  With groups of devices the result has twice the rows, of the *global* tensor: it is made by
padding with zeros and a sum over replicas, of which there is one, so the second half is zeros (`surprising`; the
permute, at the line of `xm.all_gather`, lays out 16,384 rows over the same devices).  Without groups it is the tensor
itself (`surprising_without_groups`).  With `pin_layout=False`, as in the thread, a true all-gather over replicas 0 to 7
is in the program, which do not exist: libtpu 0.0.42.1 dies of it in a check, and `collectives` refuses the program with
the line.  So that form is not rebuilt here.  (With another compiler the thread got the tensor twice.)

Instead: mark the result as whole.  The partitioner puts the gather there.

Symptom: `xm.all_gather` returns twice the rows; `xm.all_gather` has no effect under SPMD; replica groups name replicas
that do not exist; zeros in the second half of a gathered tensor
"""

from torchxla_impl.own import program, start

start(num_devices=8)  # before anything of torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.core.xla_model as xm  # noqa: E402
import torch_xla.distributed.spmd as xs  # noqa: E402

AXES = {"batch": 2, "model": 4}
MESH = xs.Mesh(np.arange(8), tuple(AXES.values()), tuple(AXES))
COLUMNS = [[0, 4], [1, 5], [2, 6], [3, 7]]


def marked(tensor, *dims):
    xs.mark_sharding(tensor, MESH, dims)
    return tensor


def gathered(gather):
    rows = marked(torch.zeros(8192, 512).to(torch_xla.device()), "batch", None)
    return program(gather(torch.tanh(rows)))


def surprising():
    return gathered(lambda rows: xm.all_gather(rows, 0, groups=COLUMNS))


def surprising_without_groups():
    return gathered(lambda rows: xm.all_gather(rows, 0))


def instead():
    return gathered(lambda rows: marked(rows, None, None))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_without_groups, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
