"""The truth: every witness gives transformers' own logits and tokens, on eight CPU devices in float32.

Prefill and eight decode steps with a static cache, on dp2tp4, where its weights are split as in the programs that are
judged.
"""

import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from meshes.process.packages import is_overwritten
from tests.kept import describe, fill
from tests.twins.cases import TOLERANCE, run, start_process
from witnesses.catalog import WITNESSES

pytestmark = pytest.mark.slow

PACKAGES = {
    "hf-torchxla": ("torch_xla", "transformers"),
    "hf-torchax": ("torchax", "transformers"),
    "tunix": ("tunix",),
}
FAMILIES = ("llama", "qwen3", "mixtral")


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    out = tmp_path_factory.mktemp("right")
    script = Path(__file__).with_name("transformers_answers.py")
    describe(out, "meshes", "tests/witnesses/transformers_answers.py", "tests/twins/reference.py", families=FAMILIES)
    fill([out], lambda folders: run(sys.executable, str(script), str(out), *FAMILIES), results=("*/*",))
    return out


def answered(name: str, reference: Path, out: Path) -> Path:
    """A folder with what the witness answers."""
    for package in PACKAGES[name.partition("+")[0]]:
        if find_spec(package) is None or (package == "torchax" and is_overwritten(package)):
            pytest.skip(f"{package} is not installed as it is: docs/witnesses.md")
    shutil.copytree(reference, out)
    describe(out, "meshes", "jax_impl", "torchxla_impl", "witnesses", "tests/xla_flags.py", name=name)

    def make(folders: Sequence[Path]) -> None:
        run(sys.executable, "-m", "witnesses.generate", str(out / "case.json"), str(out), name)

    fill([out], make, results=("logits.npy", "tokens.npy"))
    return out


CASES = [
    ("hf-torchxla", "llama"),
    ("hf-torchax", "llama"),
    ("hf-torchax+jax-attention", "qwen3"),
    ("tunix", "qwen3"),
    ("tunix+norm", "llama"),
    ("hf-torchxla", "mixtral"),
    ("hf-torchax", "mixtral"),
]
"""Every witness, and every builder with both families."""
MORE = [pytest.param("hf-torchxla", "qwen3", marks=pytest.mark.long)]
"""Its model runs through torchax in a plain run."""


def test_every_witness_is_asked() -> None:
    assert {name for name, _ in CASES} == set(WITNESSES)


@pytest.mark.parametrize(("name", "family"), CASES + MORE)
def test_a_witness_scores_as_transformers_does(name: str, family: str, right: Path, tmp_path: Path) -> None:
    rope = "plain" if WITNESSES[name].rope_theta else "own"
    out = answered(name, right / f"{family}-{rope}", tmp_path / "out")
    with np.load(out / "right.npz") as expected:
        logits, tokens = np.load(out / "logits.npy"), np.load(out / "tokens.npy")
        assert logits.shape == expected["logits"].shape == (9, 8, 512)
        assert np.abs(logits - expected["logits"]).max() <= TOLERANCE * np.abs(expected["logits"]).max()
        assert np.array_equal(tokens, expected["tokens"])


def test_a_model_that_tunix_would_compute_otherwise_is_refused(right: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(right / "llama-own", out)
    done = start_process(sys.executable, "-m", "witnesses.generate", str(out / "case.json"), str(out), "tunix")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "tunix turns queries and keys by theta=1,000,000, unscaled, whatever its config says; "
        "tiny-llama asks for theta=500,000, scaled"
    )
