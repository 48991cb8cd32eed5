"""The largest along a split dim: their values come from all devices, and where they stood is lost (jax-ml/jax#19271).

Asked: `top_k` of rows whose 65,536 entries are split over `data`: the four largest of each, and their places.

Why: the compiler knows the trick: each device finds its own four, these are gathered, and sorted again.  But it gathers
and sorts the values alone.  The table says so, one gather of `f32`; and in the compiled text the second result, the
places, is a constant: zeros, whatever the input, under both partitioners (libtpu 0.0.42.1; the report is of GPUs, and
of wrong values).  The surprise can be that a program does *not* send something.

Instead: give the parts a dim of their own, which stays split.  On each device the last dim is then whole, and so are
the 32 candidates a row that are merged in the end.

Symptom: `top_k` returns wrong indices; `top_k` along a split dim; logits gathered in sampling
"""

import jax
import jax.numpy as jnp
from jax.lax import top_k, with_sharding_constraint
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))
WHOLE = NamedSharding(MESH, P())


def lowered(function):
    rows = jax.ShapeDtypeStruct((64, 65536), "float32", sharding=NamedSharding(MESH, P(None, "data")))
    return jax.jit(function, out_shardings=WHOLE).trace(rows).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(lambda rows: top_k(rows, 4))


def in_parts(rows):
    values, places = top_k(with_sharding_constraint(rows.reshape(64, 8, 8192), NamedSharding(MESH, P(None, "data"))), 4)
    places = (places + 8192 * jnp.arange(8)[:, None]).reshape(64, 32)
    best, at = top_k(with_sharding_constraint(values.reshape(64, 32), WHOLE), 4)
    return best, jnp.take_along_axis(places, at, 1)


def instead():
    return lowered(in_parts)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
