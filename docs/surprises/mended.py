"""Reports of surprising collectives that this compiler does not emit any more.

Each was gathered once: rows shuffled by a vmapped `permutation` (jax-ml/jax#20381), a transform or a decomposition of
each row (jax-ml/jax#15680, #20683), rows written at a static place of a split dim (jax-ml/jax#23052), a grouped
convolution of a split batch (openxla/xla#47945; the CPU compiler still gathers it).  Two arrays whose sum is wanted
whole were both gathered (openxla/xla#5300), and gradients of microbatches were summed over devices one by one
(openxla/xla#6750): now there is one gather, and one sum.  A roll along a split dim (jax-ml/jax#15773) sends one row to
a neighbour, which is what it needs.

Symptom: `vmap` of `permutation` gathers; `fft` or `cholesky` of a split batch gathers; grouped convolution gathers the
batch; gradients summed once per microbatch; `roll` communicates
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",))


SPLIT, WHOLE = (NamedSharding(MESH, spec) for spec in (P("data"), P()))


def lowered(function, *shapes, out=SPLIT):
    """Of arrays that are split over their first dim."""
    rows = [jax.ShapeDtypeStruct(shape, "float32", sharding=SPLIT) for shape in shapes]
    made = jax.jit(function, out_shardings=out)
    return made.trace(*rows).lower(lowering_platforms=("tpu",))


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


def convolved(images):
    kernel = jnp.ones((3, 3, 32, 128))
    return jax.lax.conv_general_dilated(
        images, kernel, (1, 1), "SAME", feature_group_count=4, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def convolve():
    return lowered(convolved, (64, 32, 32, 128))


def add():
    return lowered(jnp.add, (4096, 1024), (4096, 1024), out=WHOLE)


def accumulated(*microbatches):
    weight = jnp.ones((512, 512))
    return sum(jax.grad(lambda w, x=x: jnp.sum(jnp.tanh(x @ w)))(weight) for x in microbatches)


def accumulate():
    return lowered(accumulated, *[(64, 512)] * 4, out=WHOLE)


def roll():
    return lowered(lambda rows: jnp.roll(rows, 1, axis=0), (8192, 1024))


if __name__ == "__main__":
    from compare import collectives

    for made in (shuffle, decompose, transform, write, convolve, add, accumulate, roll):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
