"""Names of dims to JAX's shardings."""

import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from meshes.case import Case
from meshes.twins.layout import partition_axes

DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32}
"""By the `dtype` of a `Case`."""


def named_sharding(dims: str, *, case: Case, mesh: AbstractMesh | Mesh) -> NamedSharding:
    """The sharding of an array with these dims, `_` for one that is never split."""
    return NamedSharding(mesh, PartitionSpec(*partition_axes(dims, case=case)))
