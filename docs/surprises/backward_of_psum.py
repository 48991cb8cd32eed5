"""A sum over devices in `shard_map` is summed again in the backward pass (jax-ml/jax#21855).

Asked: the gradient of a matmul whose contracting dim is split, with a `psum` in a `shard_map` without checks
(`check_vma=False`, once `check_rep=False`; a Pallas kernel inside used to need that).

Why: without the checks the compiler does not know which values are the same on all devices.  The incoming gradient
might differ from device to device, so it is summed before it goes on: the transpose of `psum` is `psum`.  Here it *is*
the same on all.

Instead: leave the checks on.  Then the sum is known to be the same everywhere, and its transpose needs no
communication.

Symptom: gradients summed twice; one `psum`, two all-reduces; unexpected all-reduce in the backward pass
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))


def split(shape, *dims):
    return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(MESH, P(*dims)))


def gradients(check):
    def product(x, weight):
        return jax.lax.psum(x @ weight, "data")

    def loss(x, weight):
        specs = {"in_specs": (P(None, "data"), P("data")), "out_specs": P()}
        return jnp.sum(jax.shard_map(product, mesh=MESH, check_vma=check, **specs)(x, weight) ** 2)

    x, weight = split((64, 1024), None, "data"), split((1024, 512), "data")
    return jax.jit(jax.grad(loss, argnums=(0, 1))).trace(x, weight).lower(lowering_platforms=("tpu",))


def surprising():
    return gradients(check=False)


def instead():
    return gradients(check=True)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
