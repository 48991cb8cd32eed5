"""Reports of surprising collectives that this compiler does not emit any more.

Each was gathered once: rows shuffled by a vmapped `permutation` (jax-ml/jax#20381), a transform or a decomposition of
each row (jax-ml/jax#15680, #20683), rows written at a static place of a split dim (jax-ml/jax#23052).  A roll along a
split dim (jax-ml/jax#15773) sends one row to a neighbour, which is what it needs.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))


def lowered(function, shape):
    rows = jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(MESH, P("data")))
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P("data")))
    return made.trace(rows).lower(lowering_platforms=("tpu",))


def shuffled(rows):
    return jax.vmap(jax.random.permutation)(jax.random.split(jax.random.key(0), len(rows)), rows)


def shuffle():
    return lowered(shuffled, (64, 1024, 16))


def decompose():
    return lowered(jnp.linalg.cholesky, (64, 128, 128))


def transform():
    return lowered(lambda rows: jnp.abs(jnp.fft.fft(rows)), (64, 128, 128))


def write():
    return lowered(lambda rows: rows.at[0:3].set(1.0), (8192, 1024))


def roll():
    return lowered(lambda rows: jnp.roll(rows, 1, axis=0), (8192, 1024))


if __name__ == "__main__":
    from compare import collectives

    for made in (shuffle, decompose, transform, write, roll):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
