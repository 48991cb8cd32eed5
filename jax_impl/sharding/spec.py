"""Names of dims to JAX's shardings."""

import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from meshes.case import Case
from meshes.twins.layout import partition_axes

DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32}
"""By the `dtype` of a `Case`."""


def named_sharding(dims: str, *, case: Case, mesh: AbstractMesh | Mesh) -> NamedSharding:
    """The sharding of an array with these dims, `_` for one that is never split."""
    axes = partition_axes(dims, case=case)
    return NamedSharding(mesh, PartitionSpec(*(_split_axes(each, case) if case.style == "typed" else each for each in axes)))


def _split_axes(axes, case):
    axes = tuple(a for a in ((axes,) if isinstance(axes, str) else axes or ()) if case.mesh.axes[a] > 1)
    return axes[0] if len(axes) == 1 else axes or None
