"""A scan over layers that devices share out gathers all layers, for each layer anew (openxla/xla#44796).

Asked: a stack of eight weights, one whole weight on each device, and a scan that takes one after the other.

Why: in the loop a layer is `dynamic_slice(stack, i)`, and which device has it is known only when it runs.  For a slice
at an unknown place of a split dim the partitioner gathers the whole dim onto every device; and the gather stays in the
loop, so that the stack travels eight times.

Instead: split each layer, not the stack.  The slice is then at a place that every device has.  Here the activations are
smaller than the weight, and only their partial sums travel.

Symptom: all-gather in every layer of a scan; stacked weights gathered whole; all-gather inside a loop
"""

import jax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"layers": 8}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *arguments, out=()):
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P(*out)))
    return made.trace(*arguments).lower(lowering_platforms=("tpu",))


def forward(x, stack):
    return jax.lax.scan(lambda x, weight: (jax.nn.relu(x @ weight), None), x, stack)[0]


def surprising():
    return lowered(forward, split((256, 1024)), split((8, 1024, 1024), "layers", None, None))


def instead():
    return lowered(forward, split((256, 1024)), split((8, 1024, 1024), None, "layers", None))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
