"""What the doors of the twins say of a request that they cannot read: one clean line, and status 2."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CASES = {
    "deep": "[" * 100_000,
    "400 digits": '{"batch": 1' + "0" * 400 + "}",
    "rules": '{"rules": true}',
    "no text": "\xff",
    "too large": " " * (33 << 20),
    "a list": "[]",
}
DOORS = [f"{arm}.{door}" for arm in ("jax_impl", "torchxla_impl") for door in ("lower", "profile", "generate")]


def last_line(*words: str) -> str:
    """The one line of a door that refuses."""
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    line = done.stderr.removesuffix("\n")
    assert len(line) <= 500
    assert line.isprintable()
    return line


@pytest.mark.parametrize("door", DOORS)
def test_a_case_that_is_not_there_is_one_line_whatever_its_name(door, tmp_path):
    more = ["cpu"] if door.endswith("profile") else []
    line = last_line(door, str(tmp_path / "no\x1b[31m\ncase"), str(tmp_path), *more)
    assert line.startswith("cannot read the case ")


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_a_case_that_nobody_writes_is_one_line(text, tmp_path):
    path = tmp_path / "case.json"
    path.write_text(text, encoding="latin-1")
    for arm in ("jax_impl", "torchxla_impl"):
        assert last_line(f"{arm}.lower", str(path), str(tmp_path)).startswith(f"cannot read the case {path}: ")


@pytest.mark.parametrize("arm", ["jax_impl", "torchxla_impl"])
def test_a_wrong_option_of_generate_is_one_line(arm):
    words = (f"{arm}.generate", "--prompt", "a", "--mesh", "tp2", "--checkpoint", "x")
    assert "is more than 2,147,483,647" in last_line(*words, "--max-new-tokens", "9" * 4_000)
    assert "unrecognized arguments" in last_line(*words, "--\x1b[31m\n" + "x" * 100_000)


@pytest.mark.parametrize("text", [json.dumps({"a": "\x1b[31m\n" * 1_000}), "[" * 100_000])
def test_a_checkpoint_that_nobody_writes_is_one_line(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    last_line("jax_impl.convert", "--checkpoint", str(tmp_path), "--out", str(tmp_path / "out"))
    last_line("jax_impl.generate", "--checkpoint", str(tmp_path), "--prompt", "a", "--mesh", "tp2")
