"""PyTorch/XLA, set up for one case; nothing of torch may be imported before."""

import os
import sys

from meshes.process.errors import MeshError

PLATFORMS = ("cpu", "tpu")


class StartError(MeshError):
    """A platform that isn't there."""


def start(*, num_devices: int, platform: str = "cpu") -> None:
    """Bring up SPMD on this machine's TPUs, or on that many virtual CPU devices: programs are traced on those, too."""
    if platform not in PLATFORMS:
        raise StartError(f"platform is {platform!r}; choose from {', '.join(PLATFORMS)}")
    os.environ |= {
        "PJRT_DEVICE": platform.upper(),
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
    from torch_xla._internal import tpu

    if platform == "tpu" and not tpu.num_available_chips():
        # Asked for its devices, the runtime would look for minutes.
        raise StartError("no TPU is attached to this machine: PyTorch/XLA finds no chip on its PCI bus")
    torch_xla.runtime.use_spmd()
    # A number in the source stays a constant of the program, instead of a parameter without a name.
    torch_xla._XLAC._set_xla_all_numbers_special_scalars(True)
    torch.set_grad_enabled(False)
