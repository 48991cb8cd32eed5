"""PyTorch/XLA, started for one case; nothing of torch may be imported before."""

import os
import sys


def start(*, num_devices: int) -> None:
    """Bring up SPMD on `num_devices` virtual CPU devices: programs are traced, and parity is run, on those."""
    os.environ |= {
        "PJRT_DEVICE": "CPU",
        "CPU_NUM_DEVICES": str(num_devices),
        # Both, and before the import: without the first no scope reaches the program, without the second no line.
        "XLA_IR_DEBUG": "1",
        "XLA_HLO_DEBUG": "1",
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
    }
    # PyTorch/XLA imports JAX wherever it finds it, for every scope; this arm is measured without it.
    sys.modules |= dict.fromkeys(("jax", "torchax"))  # type: ignore[arg-type]

    import torch
    import torch_xla
    import torch_xla.runtime

    torch_xla.runtime.use_spmd()
    # A number in the source stays a constant of the program, instead of a parameter without a name.
    torch_xla._XLAC._set_xla_all_numbers_special_scalars(True)
    torch.set_grad_enabled(False)
