"""JAX, set up for one case."""

import os
from pathlib import Path

from meshes.case import Case
from meshes.process.errors import MeshError
from meshes.process.source_paths import machine_part

PLATFORMS = ("cpu", "tpu")


class StartError(MeshError):
    """A platform that isn't there."""


def start(*, num_devices: int, platform: str = "cpu") -> None:
    """Bring up the devices: this machine's TPUs, or that many virtual CPU devices.  None may be in use."""
    if platform not in PLATFORMS:
        raise StartError(f"platform is {platform!r}; choose from {', '.join(PLATFORMS)}")
    # Before the import, which reads them.
    os.environ |= {"JAX_PLATFORMS": platform, "JAX_NUM_CPU_DEVICES": str(num_devices)}

    import jax
    from jax._src import hardware_utils

    # A private name of jax 0.10.2.  Asked for its devices, libtpu would say much on stderr first.
    if platform == "tpu" and not hardware_utils.num_available_tpu_chips_and_device_id()[0]:
        raise StartError("no TPU is attached to this machine: JAX finds no chip on its PCI bus")
    try:
        jax.devices()
    except RuntimeError as error:
        # "Unable to initialize backend 'tpu': REASON (set JAX_PLATFORMS='' to …)"
        reason = str(error).partition("': ")[2].partition(" (set ")[0]
        raise StartError(f"no {platform.upper()} is attached to this machine: {reason or error}") from None


def configure(case: Case) -> None:
    """The partitioner that the case names, and source paths without this machine's folders."""
    import jax
    from jax._src.source_info_util import register_exclusion

    # A pin bears the line of the model that placed it, not of the layout (a private name of jax 0.10.2).
    register_exclusion(f"{Path(__file__).parents[1] / 'sharding'}/")
    jax.config.update("jax_use_shardy_partitioner", case.partitioner != "gspmd")
    # The same program has the same bytes on every machine.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", machine_part(jax.__file__))
