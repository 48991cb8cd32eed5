"""The workers' doors, and scripts beside the tests, in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from meshes.case import Case
from tests.kept import run_kept
from tests.xla_flags import quick_environment

ROOT = Path(__file__).parents[2]
GIVEN = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
}
ENVIRONMENT = os.environ | GIVEN | {"PYTHONPATH": str(ROOT)}
SOURCES = ("meshes", "torchxla_impl")


def run(command: Sequence[str], *, environment: Mapping[str, str] = ENVIRONMENT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )


def run_twin(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """A process that imports the twin alone, and writes into the folder; kept."""
    return run_kept(folder, *command, sources=SOURCES, given=GIVEN)


def script(name: str, folder: Path, *arguments: object) -> str:
    """What a script beside the tests prints; it runs its programs on virtual CPU devices, if any; kept."""
    quick = {"XLA_FLAGS": quick_environment()["XLA_FLAGS"]}
    sources = (*SOURCES, f"tests/torchxla_impl/{name}", "tests/xla_flags.py")
    done = run_kept(folder, Path(__file__).with_name(name), *arguments, sources=sources, given=GIVEN | quick)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def lower(case: Case, out: Path) -> subprocess.CompletedProcess[str]:
    out.mkdir(exist_ok=True)
    (out / "case.json").write_text(case.to_json())
    return run_twin(out, "-m", "torchxla_impl.lower", out / "case.json", out)
