"""The gradient for each row of a split batch, by `jacrev`, is summed over devices (jax-ml/jax#25844).

Symptom: jacrev, jacfwd or hessian lose the sharding; per-example gradients replicated; all-reduce of the Jacobian

Asked: the gradient of each row's output in respect of a weight, `jacrev(model)(weight, rows)`, rows split over `data`.

Why: `jacrev` does not know that a row's output depends on that row alone.  It goes backward once for each output, and
the gradients that it starts from, an identity matrix, are split in no way.  Each device sums over its rows, mostly
zeros, and the Jacobian is summed over all devices, whole on each.  If its rows are required split, the partitioner
finds a better way, of eleven collectives (`surprising_pinned`).

Instead: `vmap` of the gradient of one row.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))
SPLIT, WHOLE = (NamedSharding(MESH, spec) for spec in (P("data"), P()))


def lowered(function, out):
    weight = jax.ShapeDtypeStruct((512, 32), "float32", sharding=WHOLE)
    rows = jax.ShapeDtypeStruct((1024, 512), "float32", sharding=SPLIT)
    return jax.jit(function, out_shardings=out).trace(weight, rows).lower(lowering_platforms=("tpu",))


def model(weight, rows):
    return jnp.tanh(rows @ weight).sum(-1)


def surprising():
    return lowered(jax.jacrev(model), out=None)


def surprising_pinned():
    return lowered(jax.jacrev(model), out=SPLIT)


def instead():
    return lowered(jax.vmap(jax.grad(model), in_axes=(None, 0)), out=None)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_pinned, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
