"""Loops that have nothing to do with each other wait for each other in every iteration (jax-ml/jax#26586, #20968).

Asked: `vmap` of a `while_loop` over a batch that is split; `pmap` did the same without communication.

Why: `vmap` makes one loop of them all, which goes on while *any* has to.  For a split batch "any" is an all-reduce, in
the loop's condition: once an iteration, and its length is known only when it runs.

Instead: `shard_map` around the `vmap`.  Each device has a loop of its own.

Symptom: all-reduce in the condition of a `while_loop`; `vmap` of a loop is slower than `pmap`; tiny all-reduce in every
iteration
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"batch": 8}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *arguments, out=()):
    made = jax.jit(function, out_shardings=NamedSharding(MESH, P(*out)))
    return made.trace(*arguments).lower(lowering_platforms=("tpu",))


def solve(y):
    return jax.lax.while_loop(lambda y: y < 2, lambda y: y + jnp.abs(jnp.sin(y)) + 0.01, y)


STARTS = split((1024,), "batch", dtype="float32")


def surprising():
    return lowered(jax.vmap(solve), STARTS, out=("batch",))


def instead():
    own = jax.shard_map(jax.vmap(solve), mesh=MESH, in_specs=P("batch"), out_specs=P("batch"))
    return lowered(own, STARTS, out=("batch",))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
