"""The law table of sequence parallelism, experts and contexts: what one step moves on a v5e:2x4.

Of the presets tiny and tiny-moe: 4 layers, embed 128, 16 heads and 8 KV heads of 16, bf16; 8 experts, 2 for a token.
Batch 8 (16 on pp2ep4), prompts of 1024 tokens; with a pipeline 4 microbatches and 5 ticks.
"""

from collections import Counter
from pathlib import Path

import pytest

from meshes.case import Case
from tests.jax_impl.tpu import emitted, needs_libtpu

pytestmark = [needs_libtpu, pytest.mark.slow]

# scope, kind@axes: executions in a step, payload bytes of one in prefill, and in decode; `None`: it is not there
LAWS = {
    "cp4tp2": [
        ("embed", "all-reduce@tp", 1, 524_288, 2_048),  # 8·1024/4·128·2, and in decode 8·128·2
        # Three hops of keys and of values: 2048 tokens · 4 heads · 16 · 2.
        *[("layer.attention.core", "collective-permute@cp", 4, 262_144, None)] * 6,
        # The highest score and the sum, f32, of 8 tokens · 8 heads; then 8 · 8 · 16, bf16.
        *[("layer.attention.core", "all-reduce@cp", 4, None, 256)] * 2,
        ("layer.attention.core", "all-reduce@cp", 4, None, 2_048),
        ("layer.attention.out", "all-reduce@tp", 4, 524_288, 2_048),
        ("layer.mlp.down", "all-reduce@tp", 4, 524_288, 2_048),
        ("sample", "all-gather@tp", 1, 32, 32),  # the best values of 2 shards for 8 sequences, bf16
        ("sample", "all-gather@tp", 1, 64, 64),
        ("pipeline.collect", "all-reduce@cp", 1, 32, None),  # 8 ids, s32: of the last part
    ],
    "pp2cp2tp2": [
        ("embed", "all-reduce@tp", 1, 1_048_576, 2_048),
        ("pipeline.shift", "collective-permute@pp", 5, 262_144, 512),  # 2 sequences of 512 tokens · 128 · 2
        *[("layer.attention.core", "collective-permute@cp", 10, 131_072, None)] * 2,  # 1024 tokens · 4 heads · 16 · 2
        *[("layer.attention.core", "all-reduce@cp", 10, None, 64)] * 2,  # 2 tokens · 8 heads, f32
        ("layer.attention.core", "all-reduce@cp", 10, None, 512),
        ("layer.attention.out", "all-reduce@tp", 10, 262_144, 512),  # 2 layers · 5 ticks
        ("layer.mlp.down", "all-reduce@tp", 10, 262_144, 512),
        ("sample", "all-gather@tp", 1, 32, 32),
        ("sample", "all-gather@tp", 1, 64, 64),
        ("pipeline.collect", "all-reduce@pp", 1, 32, 32),
        ("pipeline.collect", "all-reduce@cp", 1, 32, None),
    ],
    # Of a few bytes the TPU's compiler makes an all-reduce, of which each shard keeps its part, for a reduce-scatter.
    "tp8+sp": [
        ("embed", "reduce-scatter@tp", 1, 2_097_152, None),
        ("embed", "all-reduce@tp", 1, None, 2_048),
        ("layer.attention.qkv", "all-gather@tp", 4, 2_097_152, 2_048),
        ("layer.attention.out", "reduce-scatter@tp", 4, 2_097_152, None),
        ("layer.attention.out", "all-reduce@tp", 4, None, 2_048),
        ("layer.mlp.up", "all-gather@tp", 4, 2_097_152, 2_048),
        ("layer.mlp.down", "reduce-scatter@tp", 4, 2_097_152, None),
        ("layer.mlp.down", "all-reduce@tp", 4, None, 2_048),
        # The last tokens, 8 · 128 · 2: of one shard each in prefill, of all shards in decode.
        ("head", "all-reduce@tp", 1, 2_048, None),
        ("head", "all-gather@tp", 1, None, 2_048),
        ("sample", "all-gather@tp", 1, 128, 128),
        ("sample", "all-gather@tp", 1, 256, 256),
    ],
    "tp4pp2+sp": [
        ("embed", "reduce-scatter@tp", 1, 2_097_152, None),
        # 2 sequences of a microbatch do not divide by 4: in decode it is Megatron's all-reduce.
        ("embed", "all-reduce@tp", 1, None, 2_048),
        ("pipeline.shift", "collective-permute@pp", 5, 131_072, 512),  # in prefill a quarter of it
        ("layer.attention.qkv", "all-gather@tp", 10, 524_288, None),
        ("layer.attention.out", "reduce-scatter@tp", 10, 524_288, None),
        ("layer.attention.out", "all-reduce@tp", 10, None, 512),
        ("layer.mlp.up", "all-gather@tp", 10, 524_288, None),
        ("layer.mlp.down", "reduce-scatter@tp", 10, 524_288, None),
        ("layer.mlp.down", "all-reduce@tp", 10, None, 512),
        ("head", "all-reduce@tp", 1, 2_048, None),
        ("sample", "all-gather@tp", 1, 64, 64),
        ("sample", "all-gather@tp", 1, 128, 128),
        ("pipeline.collect", "all-reduce@pp", 1, 32, 32),
    ],
    "tp2ep4": [
        ("embed", "all-reduce@tp", 1, 524_288, 512),
        ("layer.attention.out", "all-reduce@tp", 4, 524_288, 512),
        # 2 groups · 8 experts · ceil(1.25·2·1024/8) places · 128 · 2; in decode 1 group and 1 place.
        ("layer.moe.dispatch", "all-to-all@ep", 4, 1_310_720, 2_048),
        ("layer.moe.combine", "all-to-all@ep", 4, 1_310_720, 2_048),
        ("layer.moe.combine", "all-reduce@tp", 4, 524_288, 512),
        ("sample", "all-gather@tp", 1, 8, 8),
        ("sample", "all-gather@tp", 1, 16, 16),
    ],
    "pp2ep4": [
        ("pipeline.shift", "collective-permute@pp", 5, 262_144, 256),
        ("layer.moe.dispatch", "all-to-all@ep", 10, 655_360, 2_048),
        ("layer.moe.combine", "all-to-all@ep", 10, 655_360, 2_048),
        ("pipeline.collect", "all-reduce@pp", 1, 16, 16),
    ],
    "cp2ep2tp2": [
        ("embed", "all-reduce@tp", 1, 524_288, 1_024),  # 8·1024/4·128·2, and in decode 4·128·2
        # A finding: of the table's copies XLA gives the halves of a batch those along the outermost axis, cp, whereas
        # ep splits the batch.  So ids and what is found for them change places: 4 · 4, and 4 · 128 · 2.
        ("embed", "collective-permute@cp,ep", 1, None, 16),
        ("embed", "collective-permute@cp,ep", 1, None, 1_024),
        *[("layer.attention.core", "collective-permute@cp", 4, 262_144, None)] * 2,  # 2048 tokens · 4 heads · 16 · 2
        *[("layer.attention.core", "all-reduce@cp", 4, None, 128)] * 2,  # 4 tokens · 8 heads, f32
        ("layer.attention.core", "all-reduce@cp", 4, None, 1_024),
        ("layer.attention.out", "all-reduce@tp", 4, 524_288, 1_024),
        # 4 groups · 8 experts · ceil(1.25·2·512/8) places · 128 · 2; in decode 1 group and ceil(1.25·2·4/8).
        ("layer.moe.dispatch", "all-to-all@ep", 4, 1_310_720, 4_096),
        ("layer.moe.combine", "all-to-all@ep", 4, 1_310_720, 4_096),
        ("layer.moe.combine", "all-reduce@tp", 4, 524_288, 1_024),
        ("sample", "all-gather@tp", 1, 16, 16),
        ("sample", "all-gather@tp", 1, 32, 32),
        ("pipeline.collect", "all-reduce@cp", 1, 16, None),
    ],
    "ep4tp2+sp": [
        ("embed", "reduce-scatter@tp", 1, 524_288, None),
        ("embed", "all-reduce@tp", 1, None, 512),
        ("layer.attention.qkv", "all-gather@tp", 4, 524_288, 512),
        ("layer.attention.out", "reduce-scatter@tp", 4, 524_288, None),
        ("layer.attention.out", "all-reduce@tp", 4, None, 512),
        ("layer.moe.route", "all-gather@tp", 4, 524_288, 512),
        ("layer.moe.dispatch", "all-to-all@ep", 4, 1_310_720, 2_048),
        ("layer.moe.combine", "all-to-all@ep", 4, 1_310_720, 2_048),
        ("layer.moe.combine", "reduce-scatter@tp", 4, 524_288, None),
        ("layer.moe.combine", "all-reduce@tp", 4, None, 512),
        ("head", "all-reduce@tp", 1, 512, None),
        ("head", "all-gather@tp", 1, None, 512),
        ("sample", "all-gather@tp", 1, 8, 8),
        ("sample", "all-gather@tp", 1, 16, 16),
    ],
}

FORMS = [(mesh, phase, {}) for mesh in LAWS for phase in ("prefill", "decode")] + [
    ("pp2cp2tp2", "decode", {"partitioner": "gspmd", "attention": "einsum"}),
    ("ep4tp2+sp", "prefill", {"partitioner": "gspmd"}),
]


@pytest.mark.parametrize(("mesh", "phase", "words"), FORMS, ids=[" ".join([m, p, *w.values()]) for m, p, w in FORMS])
def test_a_step_moves_exactly_this(mesh: str, phase: str, words: dict[str, str], tmp_path: Path) -> None:
    model, batch = "tiny-moe" if "ep" in mesh else "tiny", 16 if mesh == "pp2ep4" else 8
    case = Case.read(mesh, model_name=model, batch=batch, phases=(phase,), **words)
    column = {"prefill": 3, "decode": 4}[phase]
    law = Counter((*row[:3], row[column]) for row in LAWS[mesh] if row[column] is not None)
    assert emitted(case, tmp_path) == law
