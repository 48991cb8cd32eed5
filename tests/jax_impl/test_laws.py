"""The law table: what one step of Llama-3.1-8B moves on a v5e:2x4, as the JAX twin writes it.

Batch 8, prompts of 1024 tokens, 32 layers, embed 4096, bf16; with a pipeline 4 microbatches and 5 ticks.  Nothing
else is in the compiled programs, under either partitioner and with either attention.
"""

from collections import Counter
from pathlib import Path

import pytest

from meshes.case import Case
from tests.jax_impl.tpu import emitted, needs_libtpu

pytestmark = [needs_libtpu, pytest.mark.slow]

# scope, kind@axes: executions in a step, payload bytes of one in prefill, and in decode
LAWS = {
    "tp8": [
        ("embed", "all-reduce@tp", 1, 67_108_864, 65_536),  # 8·1024·4096·2, 8·1·4096·2
        ("layer.attention.out", "all-reduce@tp", 32, 67_108_864, 65_536),
        ("layer.mlp.down", "all-reduce@tp", 32, 67_108_864, 65_536),
        ("sample", "all-gather@tp", 1, 128, 128),  # the best values of 8 shards for 8 sequences, bf16
        ("sample", "all-gather@tp", 1, 256, 256),  # and their ids, s32
    ],
    "dp2tp4": [
        ("embed", "all-reduce@tp", 1, 33_554_432, 32_768),  # 4·1024·4096·2: half of the batch
        ("layer.attention.out", "all-reduce@tp", 32, 33_554_432, 32_768),
        ("layer.mlp.down", "all-reduce@tp", 32, 33_554_432, 32_768),
        ("sample", "all-gather@tp", 1, 32, 32),  # 4·4·2
        ("sample", "all-gather@tp", 1, 64, 64),
    ],
    "tp4pp2": [
        ("embed", "all-reduce@tp", 1, 67_108_864, 65_536),  # all microbatches at once
        ("pipeline.shift", "collective-permute@pp", 5, 16_777_216, 16_384),  # 2·1024·4096·2, each tick
        ("layer.attention.out", "all-reduce@tp", 80, 16_777_216, 16_384),  # 16 layers · 5 ticks
        ("layer.mlp.down", "all-reduce@tp", 80, 16_777_216, 16_384),
        ("sample", "all-gather@tp", 1, 64, 64),  # 4·8·2
        ("sample", "all-gather@tp", 1, 128, 128),
        ("pipeline.collect", "all-reduce@pp", 1, 32, 32),  # 8 ids, s32
    ],
    "dp2pp2tp2": [
        ("embed", "all-reduce@tp", 1, 33_554_432, 32_768),
        ("pipeline.shift", "collective-permute@pp", 5, 8_388_608, 8_192),
        ("layer.attention.out", "all-reduce@tp", 80, 8_388_608, 8_192),
        ("layer.mlp.down", "all-reduce@tp", 80, 8_388_608, 8_192),
        ("sample", "all-gather@tp", 1, 16, 16),  # 2·4·2
        ("sample", "all-gather@tp", 1, 32, 32),
        ("pipeline.collect", "all-reduce@pp", 1, 16, 16),
    ],
}

FORMS = (
    ("prefill", {}),
    ("decode", {}),
    ("decode", {"partitioner": "gspmd"}),
)


@pytest.mark.parametrize(("phase", "words"), FORMS, ids=[" ".join([phase, *words.values()]) for phase, words in FORMS])
@pytest.mark.parametrize("mesh", LAWS)
def test_a_step_moves_exactly_this(mesh: str, phase: str, words: dict[str, str], tmp_path: Path) -> None:
    assert emitted(Case.read(mesh, phases=(phase,), **words), tmp_path) == law(mesh, phase)


def test_the_attention_that_is_written_out_moves_the_same(tmp_path: Path) -> None:
    case = Case.read("tp4pp2", phases=("decode",), attention="einsum", partitioner="gspmd")
    assert emitted(case, tmp_path) == law("tp4pp2", "decode")


def test_the_unrolled_form_moves_the_same_in_as_many_instructions(tmp_path: Path) -> None:
    """Of the tiny preset, 2 layers a stage; one microbatch's state is 2 · 128 · 2 bytes."""
    found = emitted(Case.read("tp4pp2", model_name="tiny", phases=("decode",), loop="unrolled"), tmp_path)
    layers = {row[0]: count for row, count in found.items() if row[1:] == ("all-reduce@tp", 1, 512)}
    assert layers == {"layer.attention.out": 10, "layer.mlp.down": 10}  # 2 layers · 5 ticks
    assert found["pipeline.shift", "collective-permute@pp", 1, 512] in (4, 5)  # the first moves zeros


def law(mesh: str, phase: str) -> Counter[tuple[str, str, int, int]]:
    column = {"prefill": 3, "decode": 4}[phase]
    return Counter((*row[:3], row[column]) for row in LAWS[mesh])
