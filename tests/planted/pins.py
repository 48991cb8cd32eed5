"""Defects of pins: needless ones, pins over the wrong axis, whole caches, logits and outputs.

The numbers: 4 sequences of 128 tokens a device, embed 256, ffn 1024, 16 heads and 8 KV heads of 32, vocabulary 2048, 2
layers, 2 bytes an element.  In decode 4 sequences of one token, a cache of 256 places.
"""

from tests.planted.defect import CP_TP, Defect, Row, Site
from tests.planted.weights import SAMPLE

_NEEDLESS = "A gather that no row asks for; each shard then takes its own part out again."

SAMPLED_JAX = ("decoder/step.py", "return logits, layout.sample(logits)")
SAMPLED_TORCH = (
    "sharding/layout.py",
    'return self.place(torch.argmax(logits, dim=-1).int(), "slots stages batch parts")',
)
PROJECTED_JAX = (
    "decoder/attention.py",
    "return layout.place(q, HEADS), layout.place(k, KV_HEADS), layout.place(v, KV_HEADS)",
)
PROJECTED_TORCH = (
    "decoder/attention.py",
    "return layout.place(q, HEADS), layout.place(k, KV_HEADS), layout.place(v, KV_HEADS)",
)
MIXED_JAX = ("decoder/attention.py", 'return jnp.einsum("zbkgst,zbtkh->zbskgh", probs, v).reshape(q.shape)')
MIXED_TORCH = ("decoder/attention.py", 'return torch.einsum("zbkgst,zbtkh->zbskgh", probs, v).reshape(q.shape)')
TURNED_JAX = (
    "decoder/attention.py",
    "return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1).astype(x.dtype)",
)
TURNED_TORCH = (
    "decoder/attention.py",
    "return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)",
)
SELECT_JAX = ("decoder/cache.py", "return jnp.where((jnp.arange(layer.shape[2]) == place)[:, None], token, layer)")
SELECT_TORCH = ("decoder/cache.py", "return torch.where((places == place)[:, None], token, layer)")
READ_JAX = ("decoder/cache.py", 'return layout.place(keys, "stages batch positions kv_heads head_dim")')
WRITE_JAX = "return layout.place(jax.lax.dynamic_update_slice(cache, layout.place(piece, dims), at), CACHE_DIMS)"
READ_TORCH = (
    "decoder/cache.py",
    'return layout.place(layer.unflatten(-1, like.shape[3:]), "stages batch positions kv_heads head_dim")',
)

DEFECTS = (
    Defect(
        name="hidden-whole",
        chapter="Pins",
        what="the hidden activations are pinned whole",
        sites={
            "torchxla": Site(
                "decoder/layers.py",
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
                "decoder/attention.py",
                PROJECTED_JAX[1],
                PROJECTED_JAX[1].replace("(q, HEADS)", '(q, "stages batch seq _ head_dim")'),
                reported=TURNED_JAX,
            ),
            "torchxla": Site(
                "decoder/attention.py",
                PROJECTED_TORCH[1],
                PROJECTED_TORCH[1].replace("(q, HEADS)", '(q, "stages batch seq _ head_dim")'),
                reported=TURNED_TORCH,
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
                "decoder/attention.py",
                'KV_HEADS = "stages batch seq kv_heads head_dim"',
                'KV_HEADS = "stages batch seq _ head_dim"',
                reported=TURNED_TORCH,
            )
        },
        # Both halves of k, as of the queries; the gather of v is only cut again, and taken away.
        rows=(Row("layer.attention.qkv", "all-gather@tp", "4", "3/4·4·128·8·16·2", "induced activation-gather"),),
        why=_NEEDLESS,
    ),
    Defect(
        name="mixed-whole",
        chapter="Pins",
        what="what attention gives is pinned whole",
        sites={
            "jax": Site(
                "decoder/attention.py",
                "attn_out = layout.place(attn_out, HEADS)",
                'attn_out = layout.place(attn_out, "stages batch seq _ head_dim")',
                reported=MIXED_JAX,
            ),
            "torchxla": Site(
                "decoder/attention.py",
                "attn_out = layout.place(attn_out, HEADS)",
                'attn_out = layout.place(attn_out, "stages batch seq _ head_dim")',
                reported=MIXED_TORCH,
            ),
        },
        rows=(Row("layer.attention.core", "all-gather@tp", "2", "3/4·4·128·16·32·2", "induced activation-gather"),),
        why="A gather that no row asks for. The partitioner makes it at the product, and gives it its line.",
    ),
    Defect(
        name="logits-whole",
        chapter="Pins",
        what="the logits are pinned whole",
        sites={
            "jax": Site(
                "decoder/model.py",
                'return layout.place(jnp.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")',
                'return layout.place(jnp.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts _")',
            ),
            "torchxla": Site(
                "decoder/model.py",
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
            "jax": Site(*READ_JAX, READ_JAX[1].replace("positions kv_heads", "positions _"), reported=SELECT_JAX),
            "torchxla": Site(
                *READ_TORCH, READ_TORCH[1].replace("positions kv_heads", "positions _"), reported=SELECT_TORCH
            ),
        },
        rows=(
            Row(
                "layer.attention.core",
                "all-gather@tp",
                "8",
                # In each of 2 layers keys and values: 256 places of the cache, and the new token to put among them.
                "1/8·4·3/4·4·256·8·32·2 + 1/8·4·3/4·4·8·32·2",
                {"induced cache-gather": "4·3/4·4·256·8·32·2", "induced activation-gather": "4·3/4·4·8·32·2"},
            ),
        ),
        why="Cache and token are both wanted whole where one is put into the other; the token is no cache yet.",
    ),
    Defect(
        name="cache-whole-at-the-end",
        chapter="Pins",
        what="the caches that a step gives are declared whole over their heads",
        phase="decode",
        sites={
            "jax": Site(
                "decoder/step.py",
                'return "batch", make_caches(self.layout.case, lambda _: CACHE_DIMS)',
                'return "batch", make_caches(self.layout.case, lambda _: "_ stages batch positions _")',
                reported=(
                    "decoder/cache.py",
                    WRITE_JAX,
                ),
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
            "jax": Site(*READ_JAX, READ_JAX[1].replace("batch positions", "batch _"), reported=SELECT_JAX),
            "torchxla": Site(*READ_TORCH, READ_TORCH[1].replace("batch positions", "batch _"), reported=SELECT_TORCH),
        },
        rows=(
            Row(
                "layer.attention.core",
                "all-gather@cp",
                "6",
                # Keys and values, and in each layer the mask of 256 places, a byte each.
                "1/6·4·1/2·8·256·2·32·2 + 1/6·2·1/2·256",
                {"induced cache-gather": "4·1/2·8·256·2·32·2", "induced activation-gather": "2·1/2·256"},
            ),
        ),
        gone=(("layer.attention.core", "all-reduce@cp"),),
        unserved={"layer.attention.core all-reduce@cp": "2·8·4·34·4"},
        why="Each rank then has all positions, and nothing is left to merge; the mask, of more than one predicate of a "
        "device, is data.",
    ),
    Defect(
        name="ids-whole",
        chapter="Pins",
        what="the chosen ids are whole on every device",
        sites={
            "jax": Site(
                "decoder/step.py",
                'return "batch", make_caches(self.layout.case, lambda _: CACHE_DIMS)',
                'return "_", make_caches(self.layout.case, lambda _: CACHE_DIMS)',
                reported=SAMPLED_JAX,
            ),
            "torchxla": Site(
                "decoder/step.py",
                'return layout.place(merge_microbatches(ids), "batch"), logits, cache',
                'return layout.place(merge_microbatches(ids), "_"), logits, cache',
                reported=SAMPLED_TORCH,
            ),
        },
        # Of so few bytes libtpu writes the gather as a sum of parts that are zero elsewhere.
        rows=(Row("sample", "all-reduce@dp", "1", "8·4", "induced output-replication"),),
        why="Nothing asks for the other replicas' ids. The instructions that hand them on have no line: it is taken "
        "from the choice.",
    ),
)
