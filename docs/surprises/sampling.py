"""A sampler gathers the logits, and not over one axis alone (vllm-project/tpu-inference#3511, #3597).

Asked: the next token of 32 sequences: the 16 largest of 32,768 logits, noise, and the larger of these.  Sequences are
split over `data`, the vocabulary over `model`.  The sampler begins by pinning the logits to `P("data", None)`.

Why: the pin is an all-gather of all logits over `model`, at its own line.  The second gather is at the line of `top_k`:
with the last dim whole the compiler splits a `top_k` no more, not even over sequences that have nothing to do with each
other, and gathers the logits over `data` as well.  In #3597 the pin came after the greedy `argmax`
(`surprising_argmax_first`): on split logits that is two small gathers of each device's largest, value and place; and
then all logits are gathered anyway.

Instead: no pin.  `top_k` of split logits is each device's own 16 largest and their places, gathered and sorted again,
and an `argmax` is the same with one (`instead_argmax`).  Look whether two gathers are there, one of `f32` and one of
`s32`: in [top_k](#top_k) the places are lost.  Where the whole rows are needed, draw inside a `shard_map` over `data`:
that spares the second gather, not the first (`instead_whole_rows`); or at least let everything begin with the pin, so
that `argmax` is local (`instead_argmax_last`).

Symptom: logits gathered in sampling; sampler takes a third of a decode step; all-gather over data inside `top_k`;
`argmax` of sharded logits communicates; several collectives in a row at the end of a decode step
"""

import jax
import jax.numpy as jnp
from jax.lax import top_k, with_sharding_constraint
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))
ROWS = NamedSharding(MESH, P("data"))


def split(shape, *dims):
    return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(MESH, P(*dims)))


def lowered(function, *arguments):
    return jax.jit(function, out_shardings=ROWS).trace(*arguments).lower(lowering_platforms=("tpu",))


LOGITS, NOISE, NOISE_OF_ALL = split((32, 32768), "data", "model"), split((32, 16), "data"), split((32, 32768), "data")


def whole(logits):
    return with_sharding_constraint(logits, ROWS)


def draw(logits, noise):
    values, tokens = top_k(logits, 16)
    return jnp.take_along_axis(tokens, jnp.argmax(values + noise, -1, keepdims=True), -1)


def surprising():
    return lowered(lambda logits, noise: draw(whole(logits), noise), LOGITS, NOISE)


def surprising_argmax_first():
    def both(logits, noise):
        return jnp.argmax(logits, -1), jnp.argmax(whole(logits) + noise, -1)

    return lowered(both, LOGITS, NOISE_OF_ALL)


def instead():
    return lowered(draw, LOGITS, NOISE)


def instead_argmax():
    def both(logits, noise):
        return jnp.argmax(logits, -1), jnp.argmax(logits + noise, -1)

    return lowered(both, LOGITS, split((32, 32768), "data", "model"))


def instead_argmax_last():
    def both(logits, noise):
        logits = whole(logits)
        return jnp.argmax(logits, -1), jnp.argmax(logits + noise, -1)

    return lowered(both, LOGITS, NOISE_OF_ALL)


def instead_whole_rows():
    own = jax.shard_map(draw, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    return lowered(lambda logits, noise: own(whole(logits), noise), LOGITS, NOISE)


if __name__ == "__main__":
    from compare import collectives

    for made in (
        surprising,
        surprising_argmax_first,
        instead,
        instead_argmax,
        instead_argmax_last,
        instead_whole_rows,
    ):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
