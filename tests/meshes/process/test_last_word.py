"""A refusal is one line, whatever threads say before the process has ended."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.places import ROOT

DOOR = """
import os, runpy, sys, threading

def speak():
    # As Orbax's threads do under load: the main thread has said its line, and Python waits for this one.
    threading.main_thread().join()
    print("RuntimeError: Event loop is closed", file=sys.stderr, flush=True)
    os.write(2, b"W0101 00:00:00.000000 1 a.cc:1] said by a thread of C++")
    raise RuntimeError("Event loop is closed")

threading.Thread(target=speak).start()
module, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""

INSIDE = """
import os, sys
from meshes.process import last_word
from meshes.process.errors import MeshError
if sys.argv[1] == "alone":
    last_word.claim_stderr()
try:
    with last_word.defer_stderr():
        os.write(2, b"said by a thread of C++\\n")
        print("said in Python", file=sys.stderr)
        if sys.argv[2] == "refused":
            raise MeshError("refused")
        if sys.argv[2] == "failed":
            raise RuntimeError("failed")
    print("after", file=sys.stderr)
except MeshError as error:
    print("said on the way", file=sys.stderr)
    last_word.refuse(error)
    last_word.refuse("and why")
"""
TOLD = ["said by a thread of C++", "said in Python"]


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("needs", "door", "status", "line"),
    [
        ("numpy", ["compare.plan", "--mesh", "tp7x"], 2, "error: cannot read mesh"),
        (
            "jax",
            ["jax_impl.convert", "--checkpoint", "nowhere", "--out", "made"],
            2,
            "error: checkpoint 'nowhere' is no folder",
        ),
        (
            "jax",
            ["jax_impl.generate", "--checkpoint", "nowhere", "--prompt", "a", "--mesh", "tp1"],
            2,
            "error: checkpoint 'nowhere' is no folder",
        ),
        ("jax", ["jax_impl.lower", "none.json", "out"], 2, "cannot read the case none.json"),
        ("jax", ["jax_impl.patterns", "none.json", "out"], 2, "cannot read the request none.json"),
        ("torch_xla", ["torchxla_impl.lower", "none.json", "out"], 2, "cannot read the case none.json"),
        ("torch_xla", ["torchxla_impl.profile", "none.json", "out", "cpu"], 2, "cannot read the case none.json"),
        (
            "jaxlib",
            ["compare.compile.workers.compile_request", "none.json", "out"],
            2,
            "cannot read the request none.json",
        ),
        ("jaxlib", ["compare.compile.workers.compile_any", "none.json", "out"], 2, "cannot read the request none.json"),
    ],
)
def test_a_door_that_refuses_says_one_line_and_its_threads_none(
    needs: str, door: list[str], status: int, line: str
) -> None:
    if find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    done = run(DOOR, *door)
    assert done.returncode == status
    (message,) = done.stderr.splitlines()
    assert message.startswith(line)


def test_threads_are_heard_where_nothing_is_refused() -> None:
    done = run(DOOR, "compare.plan", "--mesh", "tp2")
    assert done.returncode == 0
    assert "Event loop is closed" in done.stderr
    assert "a thread of C++" in done.stderr


@pytest.mark.parametrize(
    ("whose", "end", "heard"),
    [
        ("alone", "well", [*TOLD, "after"]),
        ("alone", "refused", ["refused", "and why"]),
        ("another's", "refused", [*TOLD, "said on the way", "refused", "and why"]),
        ("another's", "well", [*TOLD, "after"]),
    ],
)
def test_what_is_said_in_between_is_heard_later_and_not_before_a_refusal(
    whose: str, end: str, heard: list[str]
) -> None:
    assert run(INSIDE, whose, end).stderr.splitlines() == heard


def test_what_is_said_before_an_error_that_nobody_expected_is_heard() -> None:
    lines = run(INSIDE, "alone", "failed").stderr.splitlines()
    assert lines[:2] == TOLD
    assert lines[-1] == "RuntimeError: failed"


def test_without_a_stderr_a_refusal_is_only_a_status() -> None:
    door = f"{sys.executable} -m jax_impl.lower none.json out 2>&-"
    done = subprocess.run(["bash", "-c", door], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
