"""Collectives that JAX programs write as permutes, for the tests: one step of T·D elements, each in a `shard_map`.

In a file of its own, since JAX is not imported where tests are collected: others say first how many devices it has.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from compare import collectives

T, D, F = 256, 512, 1024
SCOPE = "layer.mlp.down"


def around(n):
    return [(device, (device + 1) % n) for device in range(n)]


def gather_hop_by_hop(x, w, *, n):
    place, part = jax.lax.axis_index("tp"), 2 * x
    whole = jnp.zeros((T, D), x.dtype)
    for hop in range(n):
        whole = jax.lax.dynamic_update_slice(whole, part, ((place - hop) % n * (T // n), 0))
        part = jax.lax.ppermute(part, "tp", around(n)) if hop < n - 1 else part
    return whole @ w


def gather_in_a_loop(x, w, *, n):
    """All n hops: the last brings each device its own part."""

    def hop(number, carry):
        whole, part = carry
        whole = jax.lax.dynamic_update_slice(whole, part, ((place - number) % n * (T // n), 0))
        return whole, jax.lax.ppermute(part, "tp", around(n))

    place = jax.lax.axis_index("tp")
    return jax.lax.fori_loop(0, n, hop, (jnp.zeros((T, D), x.dtype), 2 * x))[0] @ w


def collective_matmul(x, w, *, n):
    place, part = jax.lax.axis_index("tp"), 2 * x
    out = jnp.zeros((T, w.shape[1]), x.dtype)
    for hop in range(n):
        out = jax.lax.dynamic_update_slice(out, part @ w, ((place - hop) % n * (T // n), 0))
        part = jax.lax.ppermute(part, "tp", around(n)) if hop < n - 1 else part
    return out


def scatter_hop_by_hop(x, w, *, n):
    place, partial = jax.lax.axis_index("tp"), x @ w
    chunks = [jax.lax.dynamic_slice(partial, ((place - hop) % n * (T // n), 0), (T // n, D)) for hop in range(1, n + 1)]
    total = chunks[0]
    for chunk in chunks[1:]:
        total = jax.lax.ppermute(total, "tp", around(n)) + chunk
    return total


def sum_hop_by_hop(x, w, *, n):
    place, part = jax.lax.axis_index("tp"), scatter_hop_by_hop(x, w, n=n)
    whole = jax.lax.dynamic_update_slice(jnp.zeros((T, D), part.dtype), part, (place * (T // n), 0))
    for hop in range(1, n):
        part = jax.lax.ppermute(part, "tp", around(n))
        whole = jax.lax.dynamic_update_slice(whole, part, ((place - hop) % n * (T // n), 0))
    return whole


def sum_by_doubling(x, w, *, n):
    total = x @ w
    for bit in range(n.bit_length() - 1):
        total += jax.lax.ppermute(total, "tp", [(device, device ^ 1 << bit) for device in range(n)])
    return jnp.maximum(total, 0)


def sum_by_turning(x, w, *, n):
    part = total = x @ w
    for _ in range(n - 1):
        part = jax.lax.ppermute(part, "tp", around(n))
        total += part
    return total


COLUMNS, ROWS = PartitionSpec(None, "tp"), PartitionSpec("tp")
GATHERS, SUMS = ((T, D), ROWS, (D, F), COLUMNS, COLUMNS), ((T, F), COLUMNS, (F, D), ROWS, PartitionSpec())
SCATTERS = (*SUMS[:4], ROWS)


def compile_step(name, n):
    """The text that libtpu makes of it."""
    function = globals()[name]
    arrays = GATHERS if name in ("gather_hop_by_hop", "gather_in_a_loop", "collective_matmul") else SUMS
    arrays = SCATTERS if name == "scatter_hop_by_hop" else arrays
    mesh = AbstractMesh((n,), ("tp",))

    def step(x, w):
        with jax.named_scope(SCOPE):
            return jax.shard_map(
                lambda x, w: function(x, w, n=n),
                mesh=mesh,
                in_specs=(arrays[1], arrays[3]),
                out_specs=arrays[4],
                check_vma=False,
            )(x, w)

    inputs = [
        jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(mesh, spec))
        for shape, spec in (arrays[:2], arrays[2:4])
    ]
    lowered = jax.jit(step).trace(*inputs).lower(lowering_platforms=("tpu",))
    return collectives(lowered, axes={"tp": n}, topology=f"v5e:{n // 2}x2").text
