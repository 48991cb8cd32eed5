"""The truth: both twins and Hugging Face transformers' Llama give the same logits and the same tokens.

float32, the same weights, eight CPU devices, each arm in a process of its own.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from meshes.case import Case
from meshes.weights import from_huggingface

ROOT = Path(__file__).parents[2]
ARMS = {"jax_impl": "jax", "torchxla_impl": "torch_xla"}
"""The arm's module, and the package without which it is skipped."""

STEPS = 1 + 8
TOLERANCE = 1e-4
"""Largest difference, as a share of the largest logit."""

CASES = (
    ("tp8", {}),
    ("dp2tp4", {}),
    ("tp4pp2", {}),
    ("dp2pp2tp2", {}),
    ("tp4pp2", {"attention": "einsum", "loop": "unrolled"}),
)


def run(*command: str) -> None:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What transformers answers."""
    if find_spec("transformers") is None or find_spec("torch") is None:
        pytest.skip("transformers is not installed")
    out = tmp_path_factory.mktemp("reference")
    run(str(Path(__file__).with_name("reference.py")), str(out))
    return out


def test_the_winners_of_the_reference_lead_clearly(reference: Path) -> None:
    logits = np.sort(np.load(reference / "logits.npy"), axis=-1)
    lead = (logits[..., -1] - logits[..., -2]).min()
    assert logits.shape == (STEPS, 8, 512)
    assert lead > 50 * TOLERANCE * np.abs(logits).max()


@pytest.mark.slow
@pytest.mark.parametrize(("mesh", "words"), CASES, ids=[" ".join([mesh, *words.values()]) for mesh, words in CASES])
@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_answers_as_transformers_does(
    arm: str, mesh: str, words: dict[str, str], reference: Path, tmp_path: Path
) -> None:
    if find_spec(ARMS[arm]) is None:
        pytest.skip(f"{ARMS[arm]} is not installed")
    prompt = np.load(reference / "prompt.npy")
    case = Case.read(mesh, model_name="tiny", dtype="f32", batch=prompt.shape[0], seq=prompt.shape[1], **words)
    (tmp_path / "case.json").write_text(case.to_json())
    np.save(tmp_path / "prompt.npy", prompt)
    with np.load(reference / "hf.npz") as state:
        np.savez(tmp_path / "weights.npz", **from_huggingface(state, case=case))
    run("-m", f"{arm}.generate", str(tmp_path / "case.json"), str(tmp_path))
    right, found = np.load(reference / "logits.npy"), np.load(tmp_path / "logits.npy")
    assert found.shape == right.shape
    assert np.abs(found - right).max() <= TOLERANCE * np.abs(right).max()
    assert np.array_equal(np.load(tmp_path / "tokens.npy"), np.load(reference / "tokens.npy"))
