"""The layout of a case: of its style, on its mesh."""

import numpy as np
import torch_xla
import torch_xla.distributed.spmd as xs

from meshes.case import Case
from meshes.process.errors import NotOfferedError
from meshes.twins.layout import LayoutError
from torchxla_impl.sharding import explicit
from torchxla_impl.sharding.layout import Layout


def layout_on_devices(case: Case) -> Layout:
    """On a mesh of this process's devices, logical ids 0, 1, … row-major over the axes.

    Raises `LayoutError` where there are more or fewer.
    """
    sizes = case.mesh.axes
    count, needed = torch_xla.runtime.global_runtime_device_count(), case.mesh.num_devices
    if count != needed:
        raise LayoutError(f"mesh {case.mesh.name} needs {needed} devices; here are {count}")
    return _class_of(case)(case, xs.Mesh(np.arange(needed), tuple(sizes.values()), tuple(sizes)))


def _class_of(case: Case) -> type[Layout]:
    if case.style == "typed":
        raise NotOfferedError("style typed is not offered by PyTorch/XLA: its tensors' types bear no shardings")
    if case.style != "explicit":
        return Layout
    explicit.check(case)
    return explicit.ExplicitLayout
