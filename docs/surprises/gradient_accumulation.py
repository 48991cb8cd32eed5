"""Gradients are summed over devices once a microbatch (AI-Hypercomputer/maxtext#5056, #5099).

Asked: gradients of four microbatches, added up.  Every device has the weight whole and a part of each microbatch; the
axis is explicit (`AxisType.Explicit`).  Only the sum at the end is of interest.

Why: a gradient of a whole weight is a whole gradient, by its type, so it is summed over devices where it is made: at
the matmul, in the backward pass.  For a loop with a whole accumulator libtpu repairs it, and moves the sum behind the
loop (`instead_whole`: there the report is gone).  It does not where the accumulator is split (ZeRO-1): each iteration
sums and cuts (`surprising`).  And where a microbatch is a call of a program of its own, no compiler sees the next one
(`surprising_call`, as in #5099: these bytes are one microbatch's).

Instead: tell JAX that the sum may wait.  A weight that is `reduced` over `data` has gradients that are `unreduced`:
each device's own, which may be added up.  `reshard` sums them once, behind the loop (`instead`), or in a program of
its own after the last call (`instead_call`, `instead_end`).  An accumulator of this kind is as large as the weight on
every device.  The tag is part of the spec: whoever makes a new spec for the weight on the way loses it without a word,
and that was the report.

Symptom: gradients summed once per microbatch; all-reduce or reduce-scatter inside the loop of gradient accumulation;
communication grows with the number of microbatches
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

AXES = {"data": 8}
MESH = AbstractMesh((8,), ("data",), axis_types=(AxisType.Explicit,))
WHOLE, SPLIT, REDUCED, UNREDUCED = P(), P("data"), P(reduced={"data"}), P(unreduced={"data"})


def array(shape, spec):
    return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(MESH, spec))


def lowered(function, *arguments, out=WHOLE):
    made = jax.jit(function, out_shardings=NamedSharding(MESH, out))  # left open on an abstract mesh, whatever its type
    with jax.sharding.use_abstract_mesh(MESH):
        return made.trace(*arguments).lower(lowering_platforms=("tpu",))


def gradient(weight, x):
    return jax.grad(lambda weight: jnp.sum(jnp.tanh(x @ weight), dtype="float32"))(weight)


def add_up(weight, microbatches, *, use, carry):
    """use, carry: how the weight is used, and what the accumulator is, in the loop."""
    weight = reshard(weight, use)

    def add(total, x):
        return total + reshard(gradient(weight, x), carry), None

    start = reshard(jnp.zeros(weight.shape, weight.dtype), carry)
    return reshard(jax.lax.scan(add, start, microbatches)[0], SPLIT)


WEIGHT, ONE, FOUR = array((512, 512), WHOLE), array((64, 512), SPLIT), array((4, 64, 512), P(None, "data"))


def surprising():
    return lowered(partial(add_up, use=WHOLE, carry=SPLIT), WEIGHT, FOUR, out=SPLIT)


def surprising_call():
    return lowered(lambda total, weight, x: total + gradient(weight, x), WEIGHT, WEIGHT, ONE)


def instead():
    return lowered(partial(add_up, use=REDUCED, carry=UNREDUCED), WEIGHT, FOUR, out=SPLIT)


def instead_whole():
    return lowered(partial(add_up, use=WHOLE, carry=WHOLE), WEIGHT, FOUR, out=SPLIT)


TOTAL = array((512, 512), UNREDUCED)


def instead_call():
    def call(total, weight, x):
        return total + gradient(reshard(weight, REDUCED), x)

    return lowered(call, TOTAL, WEIGHT, ONE, out=UNREDUCED)


def instead_end():
    return lowered(lambda total: reshard(total, WHOLE), TOTAL)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_call, instead, instead_whole, instead_call, instead_end):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
