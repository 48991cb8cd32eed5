"""Many small jobs in few processes, and what came of each: a process that dies takes one job with it."""

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "PYTHONPATH": str(ROOT),
}
TIMEOUT_S = 1800

MAX_DEATHS = 3
"""Of one worker; then what is left has failed, too."""

FAILED = "failed.txt"
"""In a job's folder: why it could not be done."""


def each(folders: Sequence[str], job: Callable[[Path], object]) -> None:
    """In a worker: the job in each folder, told on stdout as it ends; one that raises is told in its own folder."""
    for folder in folders:
        try:
            job(Path(folder))
        except Exception:
            (Path(folder) / FAILED).write_text(traceback.format_exc())
        print(folder, flush=True)


def run(module: str, *words: str, folders: Sequence[Path]) -> None:
    """`python -m module words… folders…`, again for those that are left when one of them kills the process."""
    left = [str(folder) for folder in folders if not (folder / FAILED).exists()]
    for death in range(1, MAX_DEATHS + 1):
        done = subprocess.run(
            [sys.executable, "-m", module, *words, *left],
            cwd=ROOT,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        done_folders = set(done.stdout.splitlines())
        left = [folder for folder in left if folder not in done_folders]
        if not left:
            return
        said = "\n".join(done.stderr.splitlines()[-20:])
        dead, left = (left, []) if death == MAX_DEATHS else (left[:1], left[1:])
        for folder in dead:
            (Path(folder) / FAILED).write_text(f"{module} died with status {done.returncode}:\n{said}\n")
        if not left:
            return
