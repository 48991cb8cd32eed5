"""Which cases are held against transformers, and how an arm is asked."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kept import describe, fill
from tests.xla_flags import quick_environment

ROOT = Path(__file__).parents[2]

TOLERANCE = 1e-4
"""Largest difference, as a share of the largest logit."""

MESHES = {
    "tp8": ("phi3", "qwen3_moe"),
    "dp2tp4": ("phi3", "mixtral"),
    "tp4pp2": ("llama", "qwen2_moe"),
    "dp2pp2tp2": ("qwen3", "mixtral"),
    "dp2ep4": ("mixtral", "qwen2_moe"),
    "tp2ep4": ("qwen3_moe", "mixtral"),
    "pp2ep4": ("qwen2_moe", "qwen3_moe"),
    "cp4tp2": ("llama", "mixtral"),
    "dp2cp2tp2": ("qwen3", "qwen2_moe"),
    "pp2cp2tp2": ("phi3", "qwen3_moe"),
    "cp2ep4": ("mixtral", "qwen3_moe"),
    "tp8+sp": ("qwen3", "qwen2_moe"),
    "tp4pp2+sp": ("phi3", "mixtral"),
    "cp2tp4+sp": ("llama", "qwen3_moe"),
    "ep4tp2+sp": ("qwen2_moe", "mixtral"),
}
"""Both families on a mesh are asked for logits (in JAX), and for text the second; each is on meshes of every kind."""

Words = dict[str, Any]


def logits(mesh: str, family: str, **words: Any) -> Words:
    """A case for logits, of the eight sequences of the reference."""
    fewer = {"microbatches": 2} if mesh == "pp2ep4" else {}
    return {"mesh": mesh, "family": family, **fewer, **words}


def text(mesh: str, family: str, **words: Any) -> Words:
    """A case for text."""
    return {"mesh": mesh, "family": family, "text": True, **words}


def name(words: Words) -> str:
    return " ".join(str(word) for word in words.values() if word is not True)


def list_cases(request: pytest.FixtureRequest) -> list[Words]:
    """Those of all tests that were chosen in this file."""
    return [item.callspec.params["words"] for item in request.session.items if item.path == request.path]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, on this machine's CPUs, that succeeds."""
    done = start_process(*command)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def environment() -> dict[str, str]:
    """What is given to an arm beside the environment of the tests."""
    quick = quick_environment()["XLA_FLAGS"]
    return {"JAX_PLATFORMS": "cpu", "TRANSFORMERS_VERBOSITY": "error", "XLA_FLAGS": quick}


def start_process(*command: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    words = os.environ | environment() | {"PYTHONPATH": paths}
    return subprocess.run(command, env=words, cwd=ROOT, capture_output=True, text=True, timeout=3000, check=False)


@dataclass(frozen=True)
class Answers:
    """What an arm answers to some cases, asked in one process."""

    reference: Path
    out: Path
    cases: list[Words]

    @classmethod
    def of(cls, arm: str, cases: list[Words], *, reference: Path, out: Path) -> "Answers":
        folders = [out / str(number) for number in range(len(cases))]
        for folder, words in zip(folders, cases, strict=True):
            folder.mkdir()
            (folder / "words.json").write_text(json.dumps(words))
            describe(folder, "meshes", arm, "tests/twins/answers.py", "tests/twins/reference.py", "tests/xla_flags.py")

        def make(missing: Sequence[Path]) -> None:
            asked = [cases[folders.index(folder)] for folder in missing]
            run(
                sys.executable,
                str(Path(__file__).with_name("answers.py")),
                arm,
                str(reference),
                str(out / "answers"),
                json.dumps(asked),
            )
            for number, folder in enumerate(missing):
                for path in (out / "answers").glob(f"{number}.*"):
                    path.rename(folder / f"answer{path.suffix}")

        (out / "answers").mkdir()
        fill(folders, make, results=("answer.[nj]*",))
        return cls(reference, out, cases)

    def check(self, words: Words) -> None:
        """Assert that what it answers to this case is what transformers does."""
        folder = self.out / str(self.cases.index(words)) / "answer"
        failed = folder.with_suffix(".txt")
        assert not failed.exists(), failed.read_text()
        if words.get("text"):
            self._check_text(folder.with_suffix(".json"), words)
        else:
            self._check_logits(folder.with_suffix(".npz"), words)

    def _check_logits(self, path: Path, words: Words) -> None:
        right = self.reference / words["family"]
        logits = np.load(right / "logits.npy")
        with np.load(path) as arrays:
            assert arrays["logits"].shape == logits.shape
            assert np.abs(arrays["logits"] - logits).max() <= TOLERANCE * np.abs(logits).max()
            assert np.array_equal(arrays["tokens"], np.load(right / "tokens.npy"))

    def _check_text(self, path: Path, words: Words) -> None:
        answers = json.loads(path.read_text())
        right = json.loads((self.reference / words["family"] / "text.json").read_text())
        assert answers["prompt_tokens"] == right["prompt_tokens"]
        assert answers["tokens"] == right["tokens"]
        assert answers["text"] == right["text"]
