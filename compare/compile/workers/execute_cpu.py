"""Run one arm's StableHLO on jaxlib's own runtime: `python -m compare.compile.workers.execute_cpu REQUEST.json OUTDIR`.

The programs of all arms run on the same runtime here.  Imports jaxlib, no framework.  REQUEST
holds `program`, the folder in which an arm's `lower` left program.mlirbc and about.json; it runs on virtual CPU
devices, one for each partition, with random arguments.  Programs are lowered for TPUs, and hold nothing of theirs: XLA
compiles them for CPUs as well.  Writes OUTDIR/trace/plugins/profile/<phase>/<arm>.xplane.pb and OUTDIR/about.json.
One JSON line on stdout as each stage begins.  Exit 0; 1: it failed; 2: the request can't be met; the last line on
stderr says why.
"""

import os
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict

from compare.compile.errors import RefusedError
from compare.compile.requests import AboutProgram, ArrayRow
from compare.compile.workers.worker import Stages, read_request, serve, write
from meshes.process.documents import read_json
from meshes.process.last_word import claim_stderr
from meshes.process.random_inputs import draw_values
from meshes.twins.worker import STEPS, WARMUP_STEPS

FIELDS = frozenset({"program"})
NEEDED = ("arm", "phase", "compile_options", "parameters", "outputs")


class Inputs(TypedDict):
    """The bounds of random inputs, as `draw_values` takes them."""

    vocab: int
    position: int


def execute(folder: Path, out: Path) -> None:
    """Run and record it; write the profile and about.json."""
    stages = Stages()
    stages.begin("import")
    from compare.compile import cpu_client

    about = read_about(folder)
    stages.begin("compile")
    program = cpu_client.CpuProgram((folder / "program.mlirbc").read_bytes(), about)
    stages.begin("load")
    program.load(partial(draw_values, **make_inputs(about["parameters"])))
    stages.begin("warm up")
    for _ in range(WARMUP_STEPS):
        program.step()
    stages.begin("record")
    recording = cpu_client.ProfileRecording()
    for number in range(STEPS):
        with cpu_client.mark_step(about["phase"], number=number):
            program.step()
    stages.begin("write")
    trace = out / "trace" / "plugins" / "profile" / about["phase"]
    trace.mkdir(parents=True, exist_ok=True)
    (trace / f"{about['arm']}.xplane.pb").write_bytes(recording.stop())
    executed = {
        "platform": "cpu",
        "device_kind": program.device_kind,
        "num_devices": about["compile_options"]["num_partitions"],
        "warmup_steps": WARMUP_STEPS,
        "steps": STEPS,
        "runtime": "jaxlib",
    }
    versions = about.get("versions", {}) | {"jaxlib": version("jaxlib")}
    write(out / "about.json", about | {"versions": versions, "executed": executed, "seconds": stages.seconds()})


def make_inputs(parameters: list[ArrayRow]) -> Inputs:
    """Ids that the vocabulary has, and the last position that the cache has room for."""
    sizes = {name: size for row in parameters for name, size in zip(row["dims"].split(), row["shape"], strict=True)}
    lengths = [row["shape"][3] for row in parameters if row["role"] == "cache"]
    return {"vocab": sizes.get("vocab", 1), "position": min(lengths, default=1) - 1}


def read_folder(request: Path) -> Path:
    """The folder of the program that a request names."""
    folder = Path(read_request(request, fields=FIELDS)["program"])
    for name in ("program.mlirbc", "about.json"):
        if not (folder / name).is_file():
            raise RefusedError(f"there is no program in {folder}: it has no {name}")
    return folder


def read_about(folder: Path) -> AboutProgram:
    """The about.json that the program's arm wrote."""
    try:
        about: AboutProgram = read_json(folder / "about.json")
        missing = [name for name in NEEDED if name not in about]
    except (ValueError, TypeError) as error:
        raise RefusedError(f"{folder / 'about.json'} is not what an arm writes: {error}") from error
    if missing:
        raise RefusedError(f"{folder / 'about.json'} does not say {', '.join(missing)}")
    return about


def handle_request(request: Path, out: Path) -> None:
    """Read the request, and run its program."""
    # Before jaxlib is loaded, which would log every device.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    execute(read_folder(request), out)


if __name__ == "__main__":
    claim_stderr()
    sys.exit(serve(handle_request, sys.argv[1:], module="compare.compile.workers.execute_cpu", needs="jaxlib"))
