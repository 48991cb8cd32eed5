"""The truth: the PyTorch/XLA twin and Hugging Face transformers give the same logits and the same tokens.

float32, the same checkpoints, eight CPU devices, prefill and decode; and the same text behind a prompt.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

from meshes.variants import PIN, VARIANTS
from tests.twins.cases import MESHES, Answers, Words, list_cases, logits, name, text

LOGITS = [logits(mesh, first) for mesh, (first, _) in MESHES.items()] + [
    logits("tp4pp2", "llama", attention="einsum", loop="unrolled"),
    logits("cp2tp4+sp", "llama", attention="einsum"),
    # XLA's CPU compiler of torch_xla 2.9 dies on a manually sharded loop.
    logits("dp2tp4", "phi3", style="explicit", loop="unrolled"),
    logits("tp2ep4", "qwen3_moe", style="weights"),
]

# Every variant of `meshes.variants`, on a mesh with pipeline and tensor parallelism, or with data parallelism.
WRITTEN_OTHERWISE = [
    logits("tp4pp2", "llama", variants=["attention-heads-first"]),
    logits("dp2tp4", "llama", variants=["attention-heads-first"]),
    logits("cp4tp2", "llama", variants=["attention-heads-first"]),
    logits("dp2tp4", "llama", variants=["attention-kv-grouped"]),
    logits("dp2tp4", "llama", variants=["attention-per-sequence"]),
    logits("dp2ep4", "mixtral", style="weights", variants=[name for name in VARIANTS if name.startswith(PIN)]),
]

TEXT = [
    pytest.param(text(mesh, second), marks=[pytest.mark.long] if place % 4 else [])
    for place, (mesh, (_, second)) in enumerate(MESHES.items())
]
"""Of the others a plain run compares logits alone: text is more steps of the same."""


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest, reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    if find_spec("torch_xla") is None:
        pytest.skip("torch_xla is not installed")
    out = tmp_path_factory.mktemp("torchxla")
    return Answers.of("torchxla_impl", list_cases(request), reference=reference, out=out)


@pytest.mark.slow
@pytest.mark.parametrize("words", LOGITS + WRITTEN_OTHERWISE, ids=name)
def test_torchxla_scores_as_transformers_does(words: Words, answers: Answers) -> None:
    answers.check(words)


@pytest.mark.slow
@pytest.mark.parametrize("words", TEXT, ids=name)
def test_torchxla_says_what_transformers_says(words: Words, answers: Answers) -> None:
    answers.check(words)
