"""JAX's own way to a TPU: `python -m tests.jax_impl.on_topology FOLDER…` lowers for the chips themselves and compiles.

Each folder has a case.json, and gets jax.hlo.
"""

import os
import sys
from pathlib import Path

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh

from jax_impl.decoder.step import Step
from jax_impl.sharding.layout import Layout
from jax_impl.sharding.lowering import jit_step
from meshes.assignment import assign_chips
from meshes.case import Case
from tests.laws.workers import each


def compile_here(case: Case) -> str:
    jax.config.update("jax_use_shardy_partitioner", case.partitioner == "native")
    chips = topologies.get_topology_desc(platform="tpu", topology_name=case.topology.slice_name).devices
    at = {(0, *device.coords, device.core_on_chip): device for device in chips}
    devices = np.array([at[place] for place in assign_chips(case.plan)]).reshape(*case.mesh.axes.values())
    layout = Layout(case, Mesh(devices, tuple(case.mesh.axes), axis_types=(AxisType.Auto,) * devices.ndim))
    step = Step.of(layout)
    return jit_step(layout, step.run, output_dims=step.output_dims).lower(*step.arguments).compile().as_text()


def compile_folder(folder: Path) -> None:
    (folder / "jax.hlo").write_text(compile_here(Case.from_json((folder / "case.json").read_text())))


if __name__ == "__main__":
    each(sys.argv[1:], compile_folder)
    sys.stdout.flush()
    os._exit(0)
