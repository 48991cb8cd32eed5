"""A conversion to Orbax is there whole, or it does not load."""

import json
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.twins.cases import ROOT, run, start_process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("jax") is None or find_spec("orbax") is None, reason="orbax is not installed"),
]


def convert(checkpoint: Path, out: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "jax_impl.convert", "--checkpoint", str(checkpoint), "--out", str(out))


def generating(checkpoint: Path) -> tuple[str, ...]:
    words = "--checkpoint", str(checkpoint), "--prompt", "The License"
    return ("jax_impl.generate", *words, "--mesh", "tp2", "--dtype", "f32")


def generate(checkpoint: Path) -> subprocess.CompletedProcess[str]:
    return start_process(sys.executable, "-m", *generating(checkpoint))


LOUD = """
import os, runpy, sys, threading
os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
import orbax.checkpoint as orbax

restore, spoken = orbax.Checkpointer.restore, threading.Event()

def speak():
    os.write(2, b"RuntimeError: Event loop is closed\\n")
    spoken.set()
    threading.main_thread().join()
    os.write(2, b"RuntimeError: Event loop is closed\\n")
    raise RuntimeError("Event loop is closed")

def loud(reader, path, *more):
    if path.name == "layers.mlp.up":
        threading.Thread(target=speak).start()
        spoken.wait()
    return restore(reader, path, *more)

orbax.Checkpointer.restore = loud
module, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""A door whose Orbax speaks as it does under load: in a thread, before its restore ends and after the door has."""


def line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a refusal."""
    assert done.returncode == 2, done.stderr[-2000:]
    (message,) = [line for line in done.stderr.splitlines() if not line.endswith("…")]
    return message


def test_a_killed_conversion_leaves_nothing_that_loads_and_is_made_again(reference: Path, tmp_path: Path) -> None:
    checkpoint, out = reference / "qwen3" / "checkpoint", tmp_path / "made"
    with subprocess.Popen(convert(checkpoint, out), cwd=ROOT, stderr=subprocess.PIPE, text=True) as killed:
        assert killed.stderr is not None
        for stderr_line in killed.stderr:
            if "layers.attention.k" in stderr_line:
                break
        killed.send_signal(signal.SIGKILL)
    assert not out.exists()
    (half,) = tmp_path.iterdir()
    assert "interrupted" in line(generate(half))
    assert run(*convert(checkpoint, out)).stdout == f"{out}\n"
    assert [each.name for each in tmp_path.iterdir()] == ["made"]
    assert json.loads((out / "converted.json").read_text())["dtype"] == "f32"
    assert "exists already" in line(start_process(*convert(checkpoint, out)))


def test_a_conversion_that_lost_a_file_is_refused_by_the_weight(reference: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    run(*convert(reference / "qwen3" / "checkpoint", out))
    up, table = out / "weights" / "layers.mlp.up", json.loads((out / "converted.json").read_text())
    parts = list((up / "ocdbt.process_0" / "d").iterdir())
    kept = parts[0].read_bytes()
    parts[0].write_bytes(kept[:-1])
    assert "layers.mlp.up" in line(generate(out))
    parts[0].write_bytes(kept)
    # What Orbax says is one line, too: here the table knows as little as the folder.
    for part in parts:
        part.unlink()
        del table["weights"]["layers.mlp.up"]["files"][part.relative_to(up).as_posix()]
    (out / "converted.json").write_text(json.dumps(table))
    message = line(generate(out))
    assert message.startswith(f"error: cannot restore {up}: ")
    assert message.endswith("; convert the checkpoint again")
    module, *rest = generating(out)
    assert line(start_process(sys.executable, "-c", LOUD, module, *rest)) == message
    shutil.rmtree(up)
    assert "layers.mlp.up" in line(generate(out))


def test_what_is_no_checkpoint_is_not_converted(tmp_path: Path) -> None:
    assert "no folder" in line(start_process(*convert(tmp_path / "nowhere", tmp_path / "made")))
    assert not list(tmp_path.iterdir())
