"""`generate` as a process: as the worker of a case, and its command line, its exit status and its one line."""

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from meshes.case import Case
from meshes.checkpoint import from_huggingface, read_model
from tests.kept import run_kept
from tests.twins.cases import TOLERANCE, environment, run, start_process

ARMS = {"jax_impl": "jax", "torchxla_impl": "torch_xla"}
"""The arm's module, and the package without which it is skipped."""


@pytest.fixture(params=ARMS)
def arm(request: pytest.FixtureRequest) -> str:
    if find_spec(ARMS[request.param]) is None:
        pytest.skip(f"{ARMS[request.param]} is not installed")
    return str(request.param)


def run_worker(arm: str, checkpoint: Path, *, mesh: str = "tp2", prompt: str = "The License") -> tuple[str, ...]:
    return (
        sys.executable,
        "-m",
        f"{arm}.generate",
        "--checkpoint",
        str(checkpoint),
        "--prompt",
        prompt,
        "--mesh",
        mesh,
        "--dtype",
        "f32",
    )


def refusal(arm: str, checkpoint: Path, *, mesh: str = "tp2", prompt: str = "The License") -> str:
    done = start_process(*run_worker(arm, checkpoint, mesh=mesh, prompt=prompt))
    assert done.returncode == 2, done.stderr[-2000:]
    assert not done.stdout
    (line,) = [line for line in done.stderr.splitlines() if not line.endswith("…")]
    return line


@pytest.mark.slow
def test_the_worker_of_a_case_answers_as_transformers_does(arm: str, reference: Path, tmp_path: Path) -> None:
    right, folder = reference / "llama", reference / "llama" / "checkpoint"
    prompt = np.load(right / "prompt.npy")
    case = Case.read("dp2", shapes=read_model(folder), dtype="f32", batch=prompt.shape[0], seq=prompt.shape[1])
    state = {name: each for file in folder.glob("*.safetensors") for name, each in load_file(file).items()}
    (tmp_path / "case.json").write_text(case.to_json())
    np.save(tmp_path / "prompt.npy", prompt)
    np.savez(tmp_path / "weights.npz", **from_huggingface(state, case=case))
    command = ("-m", f"{arm}.generate", tmp_path / "case.json", tmp_path)
    done = run_kept(tmp_path, *command, sources=("meshes", arm, "tests/xla_flags.py"), given=environment())
    assert done.returncode == 0, done.stderr[-3000:]
    logits = np.load(right / "logits.npy")
    assert np.abs(np.load(tmp_path / "logits.npy") - logits).max() <= TOLERANCE * np.abs(logits).max()
    assert np.array_equal(np.load(tmp_path / "tokens.npy"), np.load(right / "tokens.npy"))


@pytest.mark.slow
def test_the_command_line_prints_the_text_alone(arm: str, reference: Path) -> None:
    right = json.loads((reference / "llama" / "text.json").read_text())
    done = run(*run_worker(arm, reference / "llama" / "checkpoint", prompt=right["prompt"]))
    # The one character in it that would steer a terminal is written out.
    assert done.stdout == right["text"].replace("\x16", r"\x16") + "\n"


@pytest.mark.slow
def test_what_cannot_be_answered_is_refused_in_one_line(arm: str, reference: Path, tmp_path: Path) -> None:
    checkpoint = reference / "mixtral" / "checkpoint"
    assert "no folder" in refusal(arm, tmp_path / "nowhere")
    assert "cp4tp2 splits it into 4 parts" in refusal(arm, checkpoint, mesh="cp4tp2", prompt="T")
    assert "kv_heads=8" in refusal(arm, checkpoint, mesh="tp32")
    wordless = shutil.copytree(checkpoint, tmp_path / "wordless")
    (wordless / "tokenizer.json").unlink()
    assert "no tokenizer.json" in refusal(arm, wordless)
    (wordless / "tokenizer.json").write_text("{}")
    assert "is no tokenizer" in refusal(arm, wordless)
    cut = shutil.copytree(checkpoint, tmp_path / "cut")
    first = sorted(cut.glob("*.safetensors"))[0]
    first.write_bytes(first.read_bytes()[:-8])
    assert first.name in refusal(arm, cut)
