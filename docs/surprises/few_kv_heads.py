"""More devices than KV heads, and each has a slice of a head (vllm-project/tpu-inference#2661).

Symptom: num_kv_heads smaller than tensor parallel size; TP > kv_heads; GQA; all-to-all or all-gather of keys and values

Asked: attention with 16 query heads and two KV heads, the columns of all projections split over eight devices.
(vllm-project/tpu-inference#2585 split `head_dim` on purpose, for the same reason.)

Why: `[features, 2 · 128]` over eight devices is a quarter of a head on each.  Attention wants whole heads where its
queries are, so keys and values are gathered among the four devices that share a head: in every layer, for every token.
(In the reports by all-to-all.)

Instead: repeat each KV head for the four devices, in the weight, once it is loaded.  Each device makes the head that it
needs: four times the work of a small matmul, and nothing is sent.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"model": 8}
MESH = AbstractMesh((8,), ("model",))
TOKENS, HEAD_DIM = 64, 128


def split(shape, *dims):
    return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(MESH, P(*dims)))


def lowered(kv_heads):
    def attention(x, to_q, to_k, to_v):
        q = (x @ to_q).reshape(TOKENS, kv_heads, -1, HEAD_DIM)
        k, v = ((x @ weight).reshape(TOKENS, kv_heads, HEAD_DIM) for weight in (to_k, to_v))
        shares = jax.nn.softmax(jnp.einsum("tkgh,skh->kgts", q, k))
        return jnp.einsum("kgts,skh->tkgh", shares, v).reshape(TOKENS, -1)

    x, to_q = split((TOKENS, 1024)), split((1024, 16 * HEAD_DIM), None, "model")
    to_kv = split((1024, kv_heads * HEAD_DIM), None, "model")
    made = jax.jit(attention, out_shardings=NamedSharding(MESH, P(None, "model")))
    return made.trace(x, to_q, to_kv, to_kv).lower(lowering_platforms=("tpu",))


def surprising():
    return lowered(kv_heads=2)


def instead():
    return lowered(kv_heads=8)


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
