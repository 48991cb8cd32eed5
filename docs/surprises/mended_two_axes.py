"""Two axes: reports of surprising collectives that this compiler does not emit any more.

Symptom: all-gather at the boundary of shard_map with auto axes; OOM in sharded random init; broadcast marked sharded

Large parameters drawn at random were made whole, though they were wanted split (google/flax#3701,
marin-community/levanter#475; on GPUs).  What a `shard_map` over one axis returned was gathered over the other, which it
leaves to the partitioner, and cut again (jax-ml/jax#25813).  A number that is broadcast was split like the tensor that
it meets, and sent when that was rearranged (openxla/xla#17913).  A mask made of split ids and wanted split was
exchanged; now the ids are gathered, 48 kB (AI-Hypercomputer/maxtext#4571; where the heads take the axis the mask still
travels: [attention_mask.py](attention_mask.py)).
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"x": 2, "y": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))
BOTH = ("x", "y")


def lowered(function, *shapes, dims=(BOTH,), dtype="float32"):
    sharding = NamedSharding(MESH, P(*dims))
    arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding if shape else None) for shape in shapes]
    return jax.jit(function, out_shardings=sharding).trace(*arguments).lower(lowering_platforms=("tpu",))


def initialize():
    return lowered(lambda: jax.random.normal(jax.random.key(0), (8192, 4096)))


def enter():
    over_x = jax.shard_map(jnp.tanh, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    return lowered(over_x, (1024, 1024))


def scaled(momentum, beta):
    copies = jnp.broadcast_to(beta, (256, 2, 256))
    return momentum * copies.transpose(1, 0, 2).reshape(512, 256)


def scale():
    return lowered(scaled, (512, 256), ())


def mask():
    return lowered(lambda ids: ids[:, :, None] == ids[:, None, :], (8, 4096), dims=BOTH, dtype="int32")


if __name__ == "__main__":
    from compare import collectives

    for made in (initialize, enter, scale, mask):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
