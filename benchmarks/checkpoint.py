"""`python -m benchmarks.checkpoint`: memory and time of loading checkpoints of several gigabytes onto 8 CPU devices.

The devices' arrays are memory of this process, too.  Prints its peak beyond the bytes of the finished arrays,
framework included, and how much of that was held before loading; the limit is 1.5 × the largest shard of a weight
+ 1 GiB.  Linux only.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring import measure, python
from benchmarks.synthetic import write
from meshes.case import Case
from meshes.checkpoint import read_model
from meshes.memory import shard_bytes, weight_bytes
from meshes.weights import weights

GIB = 2**30
ARMS = ("jax_impl", "torchxla_impl")
CHECKPOINTS = (("llama-3.1-8b", 4, ("tp8", "tp4pp2")), ("mixtral-8x7b", 2, ("pp2ep4",)))
"""Preset, layers, meshes."""


def main() -> None:
    for name, layers, meshes in CHECKPOINTS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / name
            write(folder, name=name, layers=layers)
            size = sum(file.stat().st_size for file in folder.iterdir())
            print(f"{name} of {layers} layers, {size / 1e9:.1f} GB of safetensors:", flush=True)
            for mesh in meshes:
                for arm in ARMS:
                    print(f"  {arm} on {mesh}: {_line(arm, folder, mesh)}", flush=True)
            converted = Path(scratch) / "orbax"
            done = measure(python("jax_impl.convert", "--checkpoint", str(folder), "--out", str(converted)))
            print(f"  jax_impl.convert: {done.seconds:.0f} s, {done.peak_bytes / GIB:.1f} GiB at the most", flush=True)
            for mesh in meshes:
                print(f"  jax_impl on {mesh}, from Orbax: {_line('jax_impl', converted, mesh)}", flush=True)


def _line(arm: str, folder: Path, mesh: str) -> str:
    _forget(folder)
    command = python("benchmarks.checkpoint", arm, str(folder), mesh)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"failed: {' '.join(done.stderr.split()[-30:])}"
    measured = json.loads(done.stdout.splitlines()[-1])
    case = _case(folder, mesh)
    finished = case.mesh.num_devices * weight_bytes(case)
    beside, allowed = measured["peak_bytes"] - finished, 1.5 * max(_shards(case)) + GIB
    verdict = "held" if beside <= allowed else "NOT HELD"
    took = f"{finished / 1e9:.1f} GB in {measured['seconds']:.0f} s ({measured['cpu_s']:.0f} of CPU)"
    before = f"{measured['before_bytes'] / GIB:.2f} before loading"
    return f"{took}; at the most {beside / GIB:.2f} GiB beside them ({before}), {allowed / GIB:.2f} allowed: {verdict}"


def _case(folder: Path, mesh: str) -> Case:
    return Case.read(mesh, shapes=read_model(folder), batch=32)


def _shards(case: Case) -> list[int]:
    return [shard_bytes(spec, case=case) for spec in weights(case)]


def _forget(folder: Path) -> None:
    """Have the kernel drop the files' pages: they come from the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def load(arm: str, folder: Path, mesh: str) -> dict[str, Any]:
    """In a process of its own: load the weights as the arm's `generate` does, and say what that took."""
    case = _case(folder, mesh).at(phases=("prefill",))
    import_module(f"{arm}.process.start").start(num_devices=case.mesh.num_devices)
    create, step = import_module(f"{arm}.sharding.create"), import_module(f"{arm}.decoder.step").Step
    layout_step = step.of(create.layout_on_devices(case))
    source = import_module(f"{arm}.generate").open_weights(folder)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before, begun, worked = _memory("VmRSS"), time.monotonic(), time.process_time()
    held = source(layout_step)
    if arm == "torchxla_impl":
        import_module("torch_xla.core.xla_model").wait_device_ops()
    assert held
    return {
        "seconds": time.monotonic() - begun,
        "cpu_s": time.process_time() - worked,
        "before_bytes": before,
        "peak_bytes": _memory("VmHWM"),
    }


def _memory(row: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(row)).split()[1])


if __name__ == "__main__":
    if sys.argv[1:]:
        arm, folder, mesh = sys.argv[1:]
        print(json.dumps(load(arm, Path(folder), mesh)), flush=True)
        os._exit(0)  # taking torch_xla down again would cost more than a second
    main()
