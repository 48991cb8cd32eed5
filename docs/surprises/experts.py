"""The output of every expert is summed over devices, and then the tokens' own are picked and added.

Symptom: all-reduce as large as tokens × experts; a mixture of experts with split matmuls sends many times the hidden
state; dense experts in decode are slow.

Asked: in decode all 32 experts compute all tokens, which is cheap for a few; their hidden dim is split over `model`.
An einsum gives each expert's output, a second one combines them by the weights of each token's gate.  MaxText's
GPT-OSS decodes so: of 68.8 MB a step, 61.9 MB are two such sums ([witnesses](../witnesses.md)).

Why: the last matmul contracts a split dim, so that its result is a sum over devices.  The partitioner makes that sum
where the matmul stands, before the next operation: of [tokens, experts, model] numbers.  That sums commute, it does not
know.

Instead: combine first.  The gates' weights go into the hidden state, where they are as split as it is, and experts are
contracted by the last matmul together with the hidden dim: one sum of [tokens, model].
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"model": 8}
MESH = AbstractMesh((8,), ("model",))


def lowered(function):
    shapes = [
        ((8, 512), P()),
        ((8, 32), P()),
        ((32, 512, 1024), P(None, None, "model")),
        ((32, 1024, 512), P(None, "model")),
    ]
    arrays = [jax.ShapeDtypeStruct(size, "bfloat16", sharding=NamedSharding(MESH, spec)) for size, spec in shapes]
    return jax.jit(function, out_shardings=NamedSharding(MESH, P())).trace(*arrays).lower(lowering_platforms=("tpu",))


def each_then_combined(tokens, gates, up, down):
    hidden = jax.nn.silu(jnp.einsum("td,edf->tef", tokens, up))
    return jnp.einsum("tem,te->tm", jnp.einsum("tef,efm->tem", hidden, down), gates)


def surprising():
    return lowered(each_then_combined)


def combined_first(tokens, gates, up, down):
    hidden = jax.nn.silu(jnp.einsum("td,edf->tef", tokens, up))
    return jnp.einsum("tef,efm->tm", hidden * gates[:, :, None], down)


def instead():
    return lowered(combined_first)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
