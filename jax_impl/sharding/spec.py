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
    if case.style == "typed":
        axes = tuple(_that_split(each, case=case) for each in axes)
    return NamedSharding(mesh, PartitionSpec(*axes))


def _that_split(axes: str | tuple[str, ...] | None, *, case: Case) -> str | tuple[str, ...] | None:
    """Without axes of one device, which split nothing: in a type they count, and no two dims may have the same."""
    names = (axes,) if isinstance(axes, str) else axes or ()
    left = tuple(name for name in names if case.mesh.axes[name] > 1)
    return left[0] if len(left) == 1 else left or None
