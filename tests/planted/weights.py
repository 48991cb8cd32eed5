"""Defects of weights: split on the wrong dim, made whole, glued together.

The numbers: 4 sequences of 128 tokens a device, embed 256, ffn 1024, 16 heads and 8 KV heads of 32, vocabulary 2048, 2
layers, 2 bytes an element.  tp = 4: a gather or scatter has the factor 3/4, an all-reduce 3/2.
"""

from tests.planted.defect import LLAMA_1B, Defect, Row, Site

OUT, DOWN = ("layer.attention.out", "all-reduce@tp"), ("layer.mlp.down", "all-reduce@tp")
EMBED, SAMPLE = ("embed", "all-reduce@tp"), ("sample", "all-gather@tp")

DOWN_JAX = (
    "decoder/layers.py",
    'out = jnp.einsum("zbsf,zfd->zbsd", hidden, self.down[...], out_sharding=out_sharding(layout, STREAM))',
)
DOWN_SUM_JAX = "decoder/layers.py", "return layout.reduce_output(out, over=self.ffn)"
"""Where the product's sum is asked for."""
DOWN_TORCH = (
    "decoder/layers.py",
    'return layout.reduce_output(torch.einsum("zbsf,zfd->zbsd", hidden, self.down), over=self.ffn)',
)
UP_JAX = (
    "decoder/layers.py",
    'gate, up = (jnp.einsum("zbsd,zdf->zbsf", x, weight[...]) for weight in (self.gate, self.up))',
)
OUT_JAX = (
    "decoder/attention.py",
    'out = jnp.einsum("zbshk,zhkd->zbsd", attn_out, self.o[...], out_sharding=out_sharding(layout, STREAM))',
)
OUT_TORCH = (
    "decoder/attention.py",
    'return layout.reduce_output(torch.einsum("zbshk,zhkd->zbsd", attn_out, self.o), over="heads"), cache',
)
QKV_JAX = (
    "decoder/attention.py",
    'q, k, v = (jnp.einsum("zbsd,zhdk->zbshk", x, weight[...]) for weight in (self.q, self.k, self.v))',
)
QKV_TORCH = (
    "decoder/attention.py",
    'q, k, v = (torch.einsum("zbsd,zhdk->zbshk", x, weight) for weight in (self.q, self.k, self.v))',
)
LOOKUP_JAX = ("decoder/model.py", "return self.layout.lookup(self.table[...], tokens)")
LOOKUP_TORCH = ("sharding/layout.py", 'rows = F.embedding(self.place(cut, "stages parts batch slots _"), table)')
SCORES = 'return layout.place(jnp.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")'

_DECLARED = 'rows = [(each.name, "weight", each.dims, each.shape, dtype) for each in weights(case)]'


def _declared(before: str, after: str) -> str:
    """The torch twin's table of arguments, with other dims for one weight."""
    return _DECLARED.replace("each.dims", f'each.dims.replace("{before}", "{after}")')


_GATHERED = (
    "The hidden activations are gathered for the product: an operand's gather, which serves no sum. The gather of its "
    "result brings what the second half of the all-reduce would: half of the row, and the other half nothing serves."
)

DEFECTS = (
    Defect(
        name="down-by-output",
        chapter="Weights",
        what="`mlp.down` is split on its output dim",
        sites={
            "jax": Site(
                "decoder/layers.py",
                'self.down = layout.param(f"layers stages {ffn} embed")',
                'self.down = nnx.Param(layout.param(f"layers stages {ffn} embed")[...], dims=f"layers stages _ {ffn}")',
                reported=DOWN_JAX,
            ),
            "torchxla": Site("decoder/arguments.py", _DECLARED, _declared("ffn embed", "_ ffn"), reported=DOWN_TORCH),
        },
        rows=(
            Row(
                "layer.mlp.down",
                "all-gather@tp",
                "4",  # the hidden activations and the output, in each of 2 layers
                "1/2·3/4·4·128·1024·2 + 1/2·3/4·4·128·256·2",
                {"induced activation-gather": "2·3/4·4·128·1024·2", "inherent": "2·3/4·4·128·256·2"},
            ),
        ),
        gone=(DOWN,),
        unserved={"layer.mlp.down all-reduce@tp": "2·3/4·4·128·256·2"},
        why=_GATHERED,
    ),
    Defect(
        name="down-by-output-1b",
        chapter="Weights",
        what="`mlp.down` is split on its output dim, in Llama-3.2-1B",
        setting=LLAMA_1B,
        sites={
            "jax": Site(
                "decoder/layers.py",
                'self.down = layout.param(f"layers stages {ffn} embed")',
                'self.down = nnx.Param(layout.param(f"layers stages {ffn} embed")[...], dims=f"layers stages _ {ffn}")',
                reported=DOWN_JAX,
            )
        },
        rows=(
            Row(
                "layer.mlp.down",
                "all-gather@tp",
                "32",
                "1/2·3/4·4·512·8192·2 + 1/2·3/4·4·512·2048·2",
                # 402,653,184 and 100,663,296
                {"induced activation-gather": "16·3/4·4·512·8192·2", "inherent": "16·3/4·4·512·2048·2"},
            ),
        ),
        gone=(DOWN,),
        unserved={"layer.mlp.down all-reduce@tp": "16·3/4·4·512·2048·2"},
        why=_GATHERED,
    ),
    Defect(
        name="out-by-output",
        chapter="Weights",
        what="`attention.out` is split on its output dim",
        sites={
            "jax": Site(
                "decoder/attention.py",
                'self.o = layout.param("layers stages heads head_dim embed")',
                'self.o = nnx.Param(layout.param("layers stages heads head_dim embed")[...], '
                'dims="layers stages _ _ heads")',
                reported=OUT_JAX,
            ),
            "torchxla": Site(
                "decoder/arguments.py", _DECLARED, _declared("heads head_dim embed", "_ _ heads"), reported=OUT_TORCH
            ),
        },
        rows=(
            Row(
                "layer.attention.out",
                "all-gather@tp",
                "4",
                "1/2·3/4·4·128·16·32·2 + 1/2·3/4·4·128·256·2",
                {"induced activation-gather": "2·3/4·4·128·16·32·2", "inherent": "2·3/4·4·128·256·2"},
            ),
        ),
        gone=(OUT,),
        unserved={"layer.attention.out all-reduce@tp": "2·3/4·4·128·256·2"},
        why="As of `mlp.down`.",
    ),
    Defect(
        name="gate-by-input",
        chapter="Weights",
        what="`mlp.gate` is split on its input dim",
        sites={
            "jax": Site(
                "decoder/layers.py",
                'self.gate = layout.param(f"layers stages embed {ffn}")',
                'self.gate = nnx.Param(layout.param(f"layers stages embed {ffn}")[...], dims=f"layers stages {ffn} _")',
                reported=UP_JAX,
            )
        },
        rows=(
            Row("layer.mlp.up", "reduce-scatter@tp", "2", "3/4·4·128·1024·2", "induced activation-gather"),
            # What the product with gate reads is kept split by width, and gathered for the product with up.
            Row("layer.mlp.up", "all-gather@tp", "2", "3/4·4·128·256·2", "induced activation-gather"),
        ),
        why="Each shard has a part of every sum; the plan asks for neither a sum nor a gather here.",
    ),
    Defect(
        name="table-by-embed",
        chapter="Weights",
        what="the embedding is split on its width",
        sites={
            "jax": Site(
                "decoder/model.py",
                'self.table = layout.param("vocab embed")',
                'self.table = nnx.Param(layout.param("vocab embed")[...], dims="_ vocab")',
                reported=LOOKUP_JAX,
            ),
            "torchxla": Site(
                "decoder/arguments.py", _DECLARED, _declared("vocab embed", "_ vocab"), reported=LOOKUP_TORCH
            ),
        },
        rows=(Row("embed", "all-gather@tp", "1", "3/4·4·128·256·2", "inherent"),),
        gone=(EMBED,),
        unserved={"embed all-reduce@tp": "3/4·4·128·256·2"},
        why="Each shard finds its part of every row: a gather brings half of what the all-reduce would.",
    ),
    Defect(
        name="head-by-embed",
        chapter="Weights",
        what="the head is split on its input dim",
        sites={
            "jax": Site(
                "decoder/model.py",
                'self.table = layout.param("embed vocab")',
                'self.table = nnx.Param(layout.param("embed vocab")[...], dims="vocab _")',
                reported=("decoder/model.py", SCORES),
            )
        },
        rows=(
            Row("head", "all-reduce@tp", "1", "3/2·4·2048·2", "induced logits-gather"),
            # The norm before it is split by width, too: a mean in float32 for each of 4 tokens.
            Row("norm", "all-reduce@tp", "1", "3/2·4·4", "induced activation-gather"),
        ),
        why="Partial logits are added up; a scatter of the last dim is an all-reduce to libtpu.",
    ),
    Defect(
        name="table-whole",
        chapter="Weights",
        what="the embedding is pinned whole before the lookup",
        sites={
            "jax": Site(
                "sharding/layout.py",
                'rows = jnp.take(table, self.place(tokens, "slots stages batch seq"), axis=0, mode="clip")',
                'rows = jnp.take(self.place(table, "_ embed"), self.place(tokens, "slots stages batch seq"), '
                'axis=0, mode="clip")',
                reported=LOOKUP_JAX,
            ),
            "torchxla": Site(
                "sharding/layout.py",
                'rows = F.embedding(self.place(cut, "stages parts batch slots _"), table)',
                'rows = F.embedding(self.place(cut, "stages parts batch slots _"), self.place(table * 1, "_ embed"))',
            ),
        },
        rows=(Row("embed", "all-gather@tp", "1", "3/4·2048·256·2", "induced weight-gather"),),
        gone=(EMBED,),
        unserved={"embed all-reduce@tp": "3/2·4·128·256·2"},
        why="The weight travels, and no sum is left to make: the row is missing.",
    ),
    Defect(
        name="gate-and-up-over-dp",
        chapter="Weights",
        what="gate and up are split over dp, the wrong axis",
        sites={
            "torchxla": Site(
                "decoder/arguments.py",
                _DECLARED,
                _declared("embed ffn", "embed batch"),
                reported=(
                    "decoder/layers.py",
                    'gate, up = (torch.einsum("zbsd,zdf->zbsf", x, weight) for weight in (self.gate, self.up))',
                ),
            )
        },
        # Each device takes a quarter of the columns out of its half; of 8 devices 6 then have another's quarter.
        rows=(Row("layer.mlp.up", "collective-permute@dp,tp", "4", "6/8·256·256·2", "induced weight-gather"),),
        why="The columns that dp has split are wanted over tp; moved weights are weights, whatever moves them.",
    ),
    Defect(
        name="gate-over-dp",
        chapter="Weights",
        what="gate alone is split over dp, in JAX",
        sites={
            "jax": Site(
                "decoder/layers.py",
                'self.gate = layout.param(f"layers stages embed {ffn}")',
                'self.gate = nnx.Param(layout.param(f"layers stages embed {ffn}")[...], dims="layers stages _ batch")',
                reported=UP_JAX,
            )
        },
        rows=(Row("layer.mlp.up", "collective-permute@dp,tp", "2", "6/8·256·256·2", "induced weight-gather"),),
    ),
    Defect(
        name="glued-gate-up",
        chapter="Weights",
        what="gate and up are glued together, multiplied once, and cut in two",
        sites={
            "jax": Site(
                "decoder/layers.py",
                UP_JAX[1],
                'gate, up = jnp.split(jnp.einsum("zbsd,zdf->zbsf", x, '
                "jnp.concatenate([self.gate[...], self.up[...]], axis=-1)), 2, axis=-1)",
            )
        },
        rows=(
            # Split columns to split rows, of both; glued; and back, of twice as many.
            Row(
                "layer.mlp.up",
                "all-to-all@tp",
                "6",
                "1/3·3/4·256·1024·2·1/4 + 1/3·3/4·256·1024·2·1/4 + 1/3·3/4·256·2048·2·1/4",
                "induced weight-gather",
            ),
            # Gate: parts of 2 devices as they are, then a piece of one; up: pieces of 2 devices, then of one.
            Row("layer.mlp.up", "collective-permute@tp", "8", "1/16·4·128·2048·2", "induced layout-change"),
        ),
        why="The glued weight is still weights: through the concatenation, which libtpu writes as pad and maximum.",
    ),
    Defect(
        name="glued-qkv",
        chapter="Weights",
        what="naive fused qkv: q, k and v are glued together along their heads, multiplied once, and cut in three",
        sites={
            "jax": Site(
                "decoder/attention.py",
                QKV_JAX[1],
                'q, k, v = jnp.split(jnp.einsum("zbsd,zhdk->zbshk", x, '
                "jnp.concatenate([self.q[...], self.k[...], self.v[...]], axis=1)), [16, 24], axis=3)",
            )
        },
        rows=(
            # q, k and v from split heads to split rows, and the glued one back: 16 + 8 + 8 + 32 heads.
            Row(
                "layer.attention.qkv",
                "all-to-all@tp",
                "8",
                "1/4·3/4·256·64·32·2·1/4",
                "induced weight-gather",
            ),
            # q is on devices 0 and 1, k on 2, v on 3.  q: the parts of 2 devices as they are, then a piece of one; of
            # k and v three pieces each.
            Row(
                "layer.attention.qkv",
                "collective-permute@tp",
                "16",
                "1/8·1/2·4·128·8·32·2 + 1/8·1/4·4·128·4·32·2 + 1/8·6·1/4·4·128·2·32·2",
                "induced layout-change",
            ),
        ),
        why="As of gate and up.",
    ),
)
