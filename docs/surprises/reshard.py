"""Two axes trade places, and the tensor is made whole on the way (jax-ml/jax#21562).

Asked: a sum of tensors that are split `[b/y, s, d/x]`, pinned to `[b, s/(x,y), d]`.

Why: the partitioner looks for one exchange that leads from one split to the other.  Where it finds none it gathers the
whole tensor, and each device cuts its part from that.  In XLA's words: an involuntary full rematerialization.

Instead: pin the split in between, so that each change is one exchange over one axis.

Symptom: involuntary full rematerialization; all-gather where an all-to-all would do; whole tensor on every device
between two shardings
"""

import jax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"x": 4, "y": 2}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *arguments, out=()):
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P(*out)))
    return made.trace(*arguments).lower(lowering_platforms=("tpu",))


def pinned(tensor, *dims):
    return jax.lax.with_sharding_constraint(tensor, NamedSharding(MESH, P(*dims)))


PARTS = split((256, 256, 256), "y", None, "x"), split((256, 256, 256), "y", None, "x")


def surprising():
    return lowered(lambda a, b: a + b, *PARTS, out=(None, ("x", "y"), None))


def instead():
    return lowered(lambda a, b: pinned(a + b, "y", "x", None), *PARTS, out=(None, ("x", "y"), None))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
