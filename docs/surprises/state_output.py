"""A layer's state goes in split over one dim and comes out split over another (vllm-project/tpu-inference#3519).

Asked: one step of a recurrent layer (linear attention): the state `[sequences, heads, 64, 64]` times a decay for each
head.  Heads are split over `model`, and each device needs nothing but its own.  `out_shardings` names `model` one dim
too far on.

Why: the spec was written for a state of another rank: `P(None, None, "model")` instead of `P(None, "model")`.  No shape
contradicts it, so the compiler does what it says, an all-to-all of the whole state at the multiplication; and it
multiplies on the new side, so the decay is gathered, too.  So it is in every layer, for each token; and the next step
wants the state as it was, so somebody has to move it back.

Instead: give the result the sharding of the argument, by taking it from there: `out_shardings=state.sharding`.

Symptom: all-to-all in every layer; all-to-all at an elementwise operation; state or cache resharded in every step
"""

import jax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))


def split(shape, *dims, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*dims)))


STATE, DECAY = split((16, 32, 64, 64), None, "model"), split((16, 32, 1, 1), None, "model")


def lowered(out):
    made = jax.jit(lambda state, decay: state * decay, donate_argnums=0, out_shardings=out)
    return made.trace(STATE, DECAY).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(NamedSharding(MESH, P(None, None, "model")))


def instead():
    return lowered(STATE.sharding)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
