"""One's own PyTorch/XLA program, as `compare.collectives` takes it: `program(model(x))`.

Nothing is run: the tensors are those of a trace, marked with `torch_xla.distributed.spmd` after `start.start(…)`.
"""

import torch_xla
from torch import Tensor


def program(*outputs: Tensor) -> bytes:
    """The graph that makes these tensors, as a serialized HLO module from before the partitioner.

    Its parameters have the shardings that they were marked with.
    """
    return bytes(torch_xla._XLAC._get_xla_tensors_hlo_proto(list(outputs)))
