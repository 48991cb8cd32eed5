"""The truth: the JAX twin and Hugging Face transformers give the same logits and the same tokens.

float32, the same checkpoints, eight CPU devices, prefill and decode; and the same text behind a prompt.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.twins.cases import MESHES, Answers, Words, list_cases, logits, name, run, text

LOGITS = [logits(mesh, first) for mesh, (first, _) in MESHES.items()] + [
    logits("tp4pp2", "llama", attention="einsum", loop="unrolled"),
    logits("tp4pp2", "llama", partitioner="gspmd"),
    logits("cp2tp4+sp", "llama", partitioner="gspmd"),
    logits("tp2ep4", "mixtral", partitioner="gspmd"),
    logits("tp4pp2", "llama", style="explicit"),
    logits("pp2cp2tp2", "phi3", style="explicit"),
    logits("tp4pp2+sp", "mixtral", style="explicit"),
    logits("cp2tp4+sp", "llama", style="explicit"),
    logits("ep4tp2+sp", "qwen2_moe", style="explicit"),
    logits("dp2tp4", "phi3", style="typed"),
    logits("pp2cp2tp2", "qwen3", style="typed"),
    logits("ep4tp2+sp", "qwen2_moe", style="typed"),
    logits("cp4tp2", "llama", style="weights"),
    logits("pp2ep4", "mixtral", style="weights", variants=["pin:layer.moe.dispatch", "pin:step"]),
]

MORE_LOGITS = [
    pytest.param(words, marks=pytest.mark.long)
    for words in (logits(mesh, second) for mesh, (_, second) in MESHES.items())
]
"""The second family of each mesh; of every fourth mesh a plain run compares its text."""

TEXT = [
    pytest.param(text(mesh, second), marks=[pytest.mark.long] if place % 4 else [])
    for place, (mesh, (_, second)) in enumerate(MESHES.items())
]
"""Of the others a plain run compares logits alone: text is more steps of the same."""

ORBAX = [
    text("tp8", "phi3", form="orbax"),
    text("dp2tp4", "phi3", form="orbax"),
    text("pp2ep4", "mixtral", form="orbax"),
    text("tp4pp2+sp", "mixtral", form="orbax"),
    text("cp2tp4+sp", "qwen3", form="orbax"),
]
"""Converted once each; restored onto one mesh and another."""


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest, reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    for family in {words["family"] for words in ORBAX}:
        if not (reference / family / "orbax").exists():
            run(
                sys.executable,
                "-m",
                "jax_impl.convert",
                "--checkpoint",
                str(reference / family / "checkpoint"),
                "--out",
                str(reference / family / "orbax"),
            )
    out = tmp_path_factory.mktemp("jax")
    return Answers.of("jax_impl", list_cases(request), reference=reference, out=out)


@pytest.mark.slow
@pytest.mark.parametrize("words", LOGITS + MORE_LOGITS, ids=name)
def test_jax_scores_as_transformers_does(words: Words, answers: Answers) -> None:
    answers.check(words)


@pytest.mark.slow
@pytest.mark.parametrize("words", TEXT, ids=name)
def test_jax_says_what_transformers_says(words: Words, answers: Answers) -> None:
    answers.check(words)


@pytest.mark.slow
@pytest.mark.parametrize("words", ORBAX, ids=name)
def test_jax_says_the_same_from_orbax(words: Words, answers: Answers) -> None:
    answers.check(words)
