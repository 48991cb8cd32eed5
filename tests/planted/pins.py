"""Defects of pins: needless ones, pins over the wrong axis, whole caches, logits and outputs.

The numbers: 4 sequences of 128 tokens a device, embed 256, ffn 1024, 16 heads and 8 KV heads of 32, vocabulary 2048, 2
layers, 2 bytes an element.  In decode 4 sequences of one token, a cache of 256 places.
"""

from tests.planted.defect import CP_TP, LLAMA_1B, Defect, Row, Site
from tests.planted.weights import DOWN, DOWN_JAX, DOWN_TORCH, EMBED, OUT, SAMPLE

_NEEDLESS = "A gather that no row asks for; each shard then takes its own part out again."

IDS_JAX = ("step.py", 'return layout.place(sequences(layout.collect(chosen)), "batch"), logits, cache')
PROJECTED_JAX = (
    "attention.py",
    "return self.layout.place(q, HEADS), self.layout.place(k, KV_HEADS), self.layout.place(v, KV_HEADS)",
)
PROJECTED_TORCH = (
    "attention.py",
    "return layout.place(q, HEADS), layout.place(k, KV_HEADS), layout.place(v, KV_HEADS)",
)
TURNED_JAX = (
    "attention.py",
    "return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1).astype(x.dtype)",
)
TURNED_TORCH = (
    "attention.py",
    "return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)",
)
READ_JAX = (
    "cache.py",
    'return layout.place(length.reshape(stages, batch, -1, heads, head_dim), "stages batch positions kv_heads head_dim")',
)
READ_TORCH = (
    "cache.py",
    'return layout.place(length.unflatten(-1, new.shape[3:]), "stages batch positions kv_heads head_dim")',
)

DEFECTS = (
    Defect(
        name="hidden-whole",
        chapter="Pins",
        what="the hidden activations are pinned whole",
        sites={
            "torchxla": Site(
                "layers.py",
                'hidden = layout.place(F.silu(gate) * up, f"stages batch seq {self.ffn}")',
                'hidden = layout.place(F.silu(gate) * up, "stages batch seq _")',
            ),
        },
        rows=(Row("layer.mlp.up", "all-gather@tp", "2", "3/4·4·128·1024·2", "induced activation-gather"),),
        why=_NEEDLESS,
    ),
    Defect(
        name="queries-whole",
        chapter="Pins",
        what="the queries are pinned whole",
        sites={
            "jax": Site(
                "attention.py",
                PROJECTED_JAX[1],
                PROJECTED_JAX[1].replace("(q, HEADS)", '(q, "stages batch seq _ head_dim")'),
                told=TURNED_JAX,
            ),
            "torchxla": Site(
                "attention.py",
                PROJECTED_TORCH[1],
                PROJECTED_TORCH[1].replace("(q, HEADS)", '(q, "stages batch seq _ head_dim")'),
                told=TURNED_TORCH,
            ),
        },
        # The halves of heads that rope puts together are gathered one by one, and so bear its line.
        rows=(Row("layer.attention.qkv", "all-gather@tp", "4", "3/4·4·128·16·16·2", "induced activation-gather"),),
        why=_NEEDLESS,
    ),
    Defect(
        name="keys-and-values-whole",
        chapter="Pins",
        what="the rule of keys and values names no axis for their heads",
        sites={
            "torchxla": Site(
                "attention.py",
                'KV_HEADS = "stages batch seq kv_heads head_dim"',
                'KV_HEADS = "stages batch seq _ head_dim"',
                told=PROJECTED_TORCH,
            )
        },
        # Both halves of k, as of the queries, and v.
        rows=(Row("layer.attention.qkv", "all-gather@tp", "6", "1/3·3/4·4·128·16·32·2", "induced activation-gather"),),
        why=_NEEDLESS,
    ),
    Defect(
        name="mixed-whole",
        chapter="Pins",
        what="what attention gives is pinned whole",
        sites={
            "jax": Site(
                "attention.py",
                "mixed = layout.place(mixed, HEADS)",
                'mixed = layout.place(mixed, "stages batch seq _ head_dim")',
            ),
            "torchxla": Site(
                "attention.py",
                "mixed = layout.place(mixed, HEADS)",
                'mixed = layout.place(mixed, "stages batch seq _ head_dim")',
            ),
        },
        rows=(Row("layer.attention.core", "all-gather@tp", "2", "3/4·4·128·16·32·2", "induced activation-gather"),),
        why=_NEEDLESS,
    ),
    Defect(
        name="logits-whole",
        chapter="Pins",
        what="the logits are pinned whole",
        sites={
            "jax": Site(
                "model.py",
                'return layout.place(jnp.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")',
                'return layout.place(jnp.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts _")',
            ),
            "torchxla": Site(
                "model.py",
                'return layout.place(torch.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")',
                'return layout.place(torch.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts _")',
            ),
        },
        rows=(Row("head", "all-gather@tp", "1", "3/4·4·2048·2", "induced logits-gather"),),
        gone=(SAMPLE,),
        unserved={"sample all-gather@tp": "3/4·4·4·6"},
        why="Each shard then chooses among all, and no winners travel.",
    ),
    Defect(
        name="keys-of-the-cache-whole",
        chapter="Pins",
        what="keys and values that are read from the cache are pinned whole over their heads",
        phase="decode",
        sites={
            "jax": Site("cache.py", READ_JAX[1], READ_JAX[1].replace("positions kv_heads", "positions _")),
            "torchxla": Site("cache.py", READ_TORCH[1], READ_TORCH[1].replace("positions kv_heads", "positions _")),
        },
        rows=(Row("layer.attention.core", "all-gather@tp", "4", "3/4·4·256·8·32·2", "induced cache-gather"),),
        why="What a token is written into is still the cache.",
    ),
    Defect(
        name="cache-whole-at-the-end",
        chapter="Pins",
        what="the caches that a step gives are declared whole over their heads",
        phase="decode",
        sites={
            "jax": Site(
                "step.py",
                'OUTPUT_DIMS = ("batch", Cache(CACHE_DIMS, CACHE_DIMS))',
                'OUTPUT_DIMS = ("batch", Cache(*["_ stages batch positions _"] * 2))',
                told=("cache.py", "return layout.place(jax.lax.dynamic_update_slice(old, piece, at), CACHE_DIMS)"),
            )
        },
        rows=(Row("layer.attention.core", "all-gather@tp", "2", "3/4·2·4·256·8·32·2", "induced cache-gather"),),
        why="The cause is the first that holds: it is the cache before it is an output.",
    ),
    Defect(
        name="cache-whole-over-cp",
        chapter="Pins",
        what="keys and values that are read from the cache are pinned whole over their positions",
        setting=CP_TP,
        phase="decode",
        sites={
            "jax": Site("cache.py", READ_JAX[1], READ_JAX[1].replace("batch positions", "batch _")),
            "torchxla": Site("cache.py", READ_TORCH[1], READ_TORCH[1].replace("batch positions", "batch _")),
        },
        rows=(Row("layer.attention.core", "all-gather@cp", "4", "1/2·8·256·2·32·2", "induced cache-gather"),),
        gone=(("layer.attention.core", "all-reduce@cp"),),
        unserved={"layer.attention.core all-reduce@cp": "2·8·4·34·4"},
        why="Each rank then has all positions, and nothing is left to merge.",
    ),
    Defect(
        name="ids-whole",
        chapter="Pins",
        what="the chosen ids are whole on every device",
        sites={
            "jax": Site(
                "step.py",
                'OUTPUT_DIMS = ("batch", Cache(CACHE_DIMS, CACHE_DIMS))',
                'OUTPUT_DIMS = ("_", Cache(CACHE_DIMS, CACHE_DIMS))',
                told=IDS_JAX,
            ),
            "torchxla": Site(
                "step.py",
                'return layout.place(sequences(ids), "batch"), logits, cache',
                'return layout.place(sequences(ids), "_"), logits, cache',
            ),
        },
        # Of so few bytes libtpu writes the gather as a sum of parts that are zero elsewhere.
        rows=(Row("sample", "all-reduce@dp", "1", "8·4", "induced output-replication"),),
        why="Nothing asks for the other replicas' ids.",
    ),
    Defect(
        name="queries-whole-over-cp",
        chapter="Pins",
        what="the queries are gathered with the keys and values, where cp splits a prompt",
        setting=CP_TP,
        sites={
            "torchxla": Site(
                "attention.py",
                'k, v = (layout.place(each, KV_HEADS.replace("seq", "_")) for each in (k, v))',
                'q, k, v = (layout.place(each, KV_HEADS.replace("seq", "_")) for each in (q, k, v))',
            )
        },
        rows=(
            Row(
                "layer.attention.core",
                "all-gather@cp",
                "6",
                "1/3·1/2·8·128·8·32·2",  # 4 heads of q, 2 of k, 2 of v
                {"inherent": "2·1/2·8·128·4·32·2", "inflated replicated": "2·1/2·8·128·4·32·2"},
            ),
        ),
        why="Gathers of floats there stand in for the ring; they are more than it.",
    ),
    Defect(
        name="scattered-stream",
        chapter="Pins",
        what="the stream's tokens are split over tp, without +sp, in Llama-3.2-1B",
        setting=LLAMA_1B,
        sites={
            "jax": Site(
                "layout.py",
                'STREAM = "stages stream_batch stream_seq embed"',
                'STREAM = "stages stream_batch heads embed"',
                told=DOWN_JAX,
            )
        },
        rows=(
            # 201,326,592: what the second halves of the 32 rows of layers would move.
            Row("layer.attention.qkv", "all-gather@tp", "16", "3/4·4·512·2048·2", "inherent"),
            Row("layer.mlp.up", "all-gather@tp", "16", "3/4·4·512·2048·2", "inherent"),
            Row("layer.attention.out", "reduce-scatter@tp", "16", "3/4·4·512·2048·2", "inherent"),
            # A windowed einsum: 5 hops of a shard in each of 16 layers, where 3 carry the same.
            Row(
                "layer.mlp.down",
                "collective-permute@tp",
                "80",
                "4·128·2048·2",
                {"inherent": "16·3·4·128·2048·2", "inflated windowed-einsum": "16·2·4·128·2048·2"},
            ),
            Row("embed", "reduce-scatter@tp", "1", "3/4·4·512·2048·2", "inherent"),
            # The last tokens, which one shard has: exchanged, sent and added up; 77,824 together.
            Row("embed", "all-to-all@tp", "1", "3/4·4·4·2048·2", "induced layout-change"),
            Row("embed", "collective-permute@tp", "1", "1/4·4·2048·2", "induced layout-change"),
            Row("embed", "all-reduce@tp", "1", "3/2·4·2048·2", "induced activation-gather"),
        ),
        gone=(OUT, DOWN),
        unserved={"embed all-reduce@tp": "3/4·4·512·2048·2"},
        why="A scatter after the block and a gather before the next are the two halves of its all-reduce. The gather "
        "of the first layer's is that of the loop, whose own scatter it serves, so the embedding's second half nothing "
        "serves.",
    ),
    Defect(
        name="scattered-sums",
        chapter="Pins",
        what="what a block adds to the stream is pinned with its tokens split over tp, without +sp",
        sites={
            "jax": Site(
                "layout.py",
                "return self.place(x, STREAM)",
                'return self.place(x, "stages stream_batch heads embed")',
                told=("pipeline.py", "state = layout.place(state, STREAM)"),
            )
        },
        rows=(
            Row("layer.attention.out", "reduce-scatter@tp", "2", "3/4·4·128·256·2", "inherent"),
            Row("layer.mlp.down", "reduce-scatter@tp", "2", "3/4·4·128·256·2", "inherent"),
            Row("norm", "all-gather@tp", "4", "3/4·4·128·256·2", "inherent"),
            Row("embed", "reduce-scatter@tp", "1", "3/4·4·128·256·2", "inherent"),
            # The state after the last layer: a third gather for the two scatters of `mlp.down`.
            Row("embed", "all-gather@tp", "1", "3/4·4·128·256·2", "inflated replicated"),
        ),
        gone=(OUT, DOWN, EMBED),
        unserved={"embed all-reduce@tp": "3/4·4·128·256·2"},
        why="As of the stream, but that the state is made whole again after the last layer.",
    ),
    Defect(
        name="scattered-sums-torch",
        chapter="Pins",
        what="the same in PyTorch, where the looked-up rows stay whole",
        sites={
            "torchxla": Site(
                "layout.py",
                "return self.place(x, STREAM)",
                'return self.place(x, "stages stream_batch heads embed")',
                told=DOWN_TORCH,
            )
        },
        rows=(
            Row("layer.attention.out", "reduce-scatter@tp", "2", "3/4·4·128·256·2", "inherent"),
            Row("layer.mlp.down", "reduce-scatter@tp", "2", "3/4·4·128·256·2", "inherent"),
            Row("norm", "all-gather@tp", "4", "3/4·4·128·256·2", "inherent"),
            Row("layer.mlp.down", "all-gather@tp", "1", "3/4·4·128·256·2", "inflated replicated"),
        ),
        gone=(OUT, DOWN),
        why="The first layer gathers what was whole before: three gathers for two scatters of `mlp.down`.",
    ),
)
