"""One's own PyTorch/XLA program, as `compare.collectives` takes it: `program(model(x))`.

Nothing is run: the tensors are those of a trace, marked with `torch_xla.distributed.spmd` after `start(…)`.
"""

import sys
from typing import Any

from torchxla_impl.process.start import start as begin

if "torch_xla" in sys.modules:  # brought up by something else than our `start`
    from torchxla_impl.process import scalars

    scalars.watch()


class Program(bytes):
    """A serialized HLO module from before the partitioner; its parameters have the shardings that they were given."""

    notes: tuple[str, ...] = ()
    """What is not as it looks: the table shows it."""


def start(*, num_devices: int, autograd: bool = False) -> None:
    """Bring up that many virtual devices, before the first import of torch.

    autograd: leave autograd on, for a training step; else it is off in the whole process, as under `torch.no_grad()`:
    `loss.backward()` would be an error, and nothing is kept for it.

    Numbers are what they are where PyTorch/XLA runs: arguments of the program, but for 0, 1 and −1, which it takes for
    constants.
    """
    begin(num_devices=num_devices)
    import torch
    import torch_xla

    from torchxla_impl.process import scalars

    torch.set_grad_enabled(autograd)
    torch_xla._XLAC._set_xla_all_numbers_special_scalars(False)
    scalars.watch()


def program(*outputs: Any) -> Program:
    """The graph that makes these tensors."""
    import torch_xla

    from torchxla_impl.process import scalars

    lowered = Program(torch_xla._XLAC._get_xla_tensors_hlo_proto(list(outputs)))
    lowered.notes = scalars.notes(outputs)
    return lowered
