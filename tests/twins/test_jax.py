"""The truth: the JAX twin and Hugging Face transformers give the same logits and the same tokens.

float32, the same checkpoints, eight CPU devices, prefill and decode; and the same text behind a prompt.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.twins.cases import MESHES, Answers, Words, name, run

LOGITS: list[Words] = [{"mesh": mesh, "family": family} for mesh, families in MESHES.items() for family in families] + [
    {"mesh": "tp4pp2", "family": "llama", "attention": "einsum", "loop": "unrolled"},
    {"mesh": "tp4pp2", "family": "llama", "partitioner": "gspmd"},
    {"mesh": "cp2tp4+sp", "family": "llama", "partitioner": "gspmd"},
    {"mesh": "tp2ep4", "family": "mixtral", "partitioner": "gspmd"},
]

TEXT: list[Words] = [{"mesh": mesh, "family": second, "text": True} for mesh, (_, second) in MESHES.items()]

ORBAX: list[Words] = [
    {"mesh": mesh, "family": family, "text": True, "form": "orbax"}
    for mesh, family in (("tp8", "phi3"), ("dp2tp4", "phi3"), ("pp2ep4", "mixtral"), ("tp4pp2+sp", "mixtral"),
                         ("cp2tp4+sp", "qwen3"))
]  # fmt: skip
"""Converted once each; restored onto one mesh and another."""


@pytest.fixture(scope="module")
def answers(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    for family in {words["family"] for words in ORBAX}:
        if not (reference / family / "orbax").exists():
            run(sys.executable, "-m", "jax_impl.convert", "--checkpoint", str(reference / family / "checkpoint"),
                "--out", str(reference / family / "orbax"))  # fmt: skip
    return Answers.of("jax_impl", LOGITS + TEXT + ORBAX, reference=reference, out=tmp_path_factory.mktemp("jax"))


@pytest.mark.slow
@pytest.mark.parametrize("words", LOGITS, ids=name)
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
