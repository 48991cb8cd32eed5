"""Defects of the residual stream: split over tp between the blocks, where the plan keeps it whole.

The numbers: 4 sequences of 128 tokens a device, embed 256, 2 layers, 2 bytes an element; of Llama-3.2-1B 4 of 512, 2048
and 16.  tp = 4: a gather or scatter has the factor 3/4.
"""

from tests.planted.defect import LLAMA_1B, Defect, Row, Site
from tests.planted.weights import DOWN, DOWN_JAX, EMBED, OUT

DEFECTS = (
    Defect(
        name="scattered-stream",
        chapter="The stream",
        what="the stream's tokens are split over tp, without +sp, in Llama-3.2-1B",
        setting=LLAMA_1B,
        sites={
            "jax": Site(
                "sharding/layout.py",
                'STREAM = "stages stream_batch stream_seq embed"',
                'STREAM = "stages stream_batch heads embed"',
                reported=DOWN_JAX,
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
        chapter="The stream",
        what="what a block adds to the stream is pinned with its tokens split over tp, without +sp",
        sites={
            "jax": Site(
                "sharding/layout.py",
                "return self.place(x, STREAM)",
                'return self.place(x, "stages stream_batch heads embed")',
                reported=("decoder/pipeline.py", "state = layout.place(state, STREAM)"),
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
        chapter="The stream",
        what="the same in PyTorch",
        sites={
            "torchxla": Site(
                "sharding/layout.py",
                "return self.place(x, STREAM)",
                'return self.place(x, "stages stream_batch heads embed")',
                reported=(
                    "sharding/layout.py",
                    'rows = F.embedding(self.place(cut, "stages parts batch slots _"), table)',
                ),
            )
        },
        rows=(
            Row("layer.attention.out", "reduce-scatter@tp", "2", "3/4·4·128·256·2", "inherent"),
            Row("layer.mlp.down", "reduce-scatter@tp", "2", "3/4·4·128·256·2", "inherent"),
            Row("norm", "all-gather@tp", "4", "3/4·4·128·256·2", "inherent"),
            Row("embed", "reduce-scatter@tp", "1", "3/4·4·128·256·2", "inherent"),
            Row("embed", "all-gather@tp", "1", "3/4·4·128·256·2", "inflated replicated"),
        ),
        gone=(OUT, DOWN, EMBED),
        unserved={"embed all-reduce@tp": "3/4·4·128·256·2"},
        why="As in JAX; the row of the difference is that of the lookup, whose sum is scattered and gathered again.",
    ),
)
