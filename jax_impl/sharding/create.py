"""The layout of a case: of its style, on its mesh."""

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh

from jax_impl.sharding import typed
from jax_impl.sharding.explicit import ExplicitLayout
from jax_impl.sharding.layout import Layout
from meshes.case import Case
from meshes.twins.layout import LayoutError


def abstract_layout(case: Case) -> Layout:
    """On a mesh of no devices: programs are traced for logical ids 0, 1, …, row-major over the axes."""
    sizes = case.mesh.axes
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=_axis_types(case))
    return _class_of(case)(case, mesh)


def layout_on_devices(case: Case) -> Layout:
    """On a mesh of this process's devices, in order of id.  Raises `LayoutError` where they are too few."""
    sizes = case.mesh.axes
    devices, needed = jax.devices(), case.mesh.num_devices
    if len(devices) < needed:
        raise LayoutError(f"mesh {case.mesh.name} needs {needed} devices; here are {len(devices)}")
    # `jax.make_mesh` would lay TPUs out anew, as the other twin's runtime can't.
    grid = np.array(devices[:needed]).reshape(*sizes.values())
    return _class_of(case)(case, Mesh(grid, tuple(sizes), axis_types=_axis_types(case)))


def _class_of(case: Case) -> type[Layout]:
    if case.style != "typed":
        return ExplicitLayout if case.style == "explicit" else Layout
    typed.check(case)
    return typed.TypedLayout


def _axis_types(case: Case) -> tuple[AxisType, ...]:
    return (AxisType.Explicit if case.style == "typed" else AxisType.Auto,) * len(case.mesh.axes)
