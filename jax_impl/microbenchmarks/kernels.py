"""The programs that are timed, each one kind of work over and over, as much as the request says.

A product or collective is done `depth` times one after the other, each on the result of the one before, so that the
call from the host costs little beside it; nothing can be merged or left out.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

COLUMNS = 1024
"""Elements of a row of what is copied or sent."""
DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32}

Program = tuple[jax.stages.Wrapped, tuple[jax.Array, ...]]


def make_kernel(request: dict[str, Any]) -> Program:
    """The function of a benchmark, not yet compiled, and its arguments on the devices."""
    kind, depth, dtype = request["kind"], request["depth"], DTYPES[request["dtype"]]
    if kind == "matmul":
        return _matmul(request["size"], depth, dtype)
    if kind in ("copy", "elementwise"):
        return _stream(kind, request["bytes"], request.get("ops", 0), dtype)
    return _collective(kind, request["bytes"], request["devices"], depth, dtype)


def _matmul(size: int, depth: int, dtype: Any) -> Program:
    """depth products of size × size: a row of ones stays one of ones."""

    def function(left: jax.Array, right: jax.Array) -> jax.Array:
        for _ in range(depth):
            left = left @ right
        return left

    return jax.jit(function), (jnp.ones((size, size), dtype), jnp.eye(size, dtype=dtype))


def _stream(kind: str, num_bytes: int, ops: int, dtype: Any) -> Program:
    """Reads and writes num_bytes in all: a copy, or `ops` subtractions and products of each element."""

    def function(x: jax.Array) -> jax.Array:
        for _ in range(ops):
            x = x * (2 - x)
        return x

    rows = max(1, num_bytes // 2 // jnp.dtype(dtype).itemsize // COLUMNS)
    return jax.jit(jnp.copy if kind == "copy" else function), (jnp.full((rows, COLUMNS), 0.5, dtype),)


def _collective(kind: str, num_bytes: int, size: int, depth: int, dtype: Any) -> Program:
    """Payload of num_bytes a device, of an all-gather its result; each step on its own multiple of the last."""
    mesh = Mesh(np.array(jax.devices()[:size]), ("group",))
    rows = max(1, num_bytes // jnp.dtype(dtype).itemsize // COLUMNS // size) * size
    steps = [(device, (device + 1) % size) for device in range(size)]
    verbs: dict[str, Callable[[jax.Array], jax.Array]] = {
        "all-reduce": lambda x: jax.lax.psum(x, "group"),
        "all-gather": lambda x: jax.lax.all_gather(x[: rows // size], "group", tiled=True),
        "reduce-scatter": lambda x: jnp.tile(jax.lax.psum_scatter(x, "group", tiled=True), (size, 1)),
        "all-to-all": lambda x: jax.lax.all_to_all(x, "group", 0, 0, tiled=True),
        "collective-permute": lambda x: jax.lax.ppermute(x, "group", steps),
    }

    def body(x: jax.Array, factor: jax.Array) -> jax.Array:
        for _ in range(depth):
            x = verbs[kind](x) * factor
        return x

    spread = PartitionSpec("group")
    function = jax.shard_map(body, mesh=mesh, in_specs=(spread, spread), out_specs=spread, check_vma=False)
    place = NamedSharding(mesh, spread)
    # 1 / size: sums of equal values stay what they are.
    values = (jnp.ones((rows * size, COLUMNS), dtype), jnp.full((size, 1), 1 / size, dtype))
    return jax.jit(function), tuple(jax.device_put(value, place) for value in values)
