"""What came of the programs of docs/surprises: compiled once, in three processes."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from compare.diff.own.api import collectives
from compare.diff.own.table import Table
from tests.surprises.programs import EXAMPLES

ROOT = EXAMPLES.parents[1]
TORCH = ("fsdp",)
QUIET = {
    "JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-8",
}  # fmt: skip


def compile_examples(out: Path) -> Mapping[str, Table]:
    """`reshard.surprising` -> its table."""
    names = sorted(file.stem for file in EXAMPLES.glob("*.py"))
    for asked in ([name for name in names if name not in TORCH], list(TORCH), []):
        command = [sys.executable, "-m", "tests.surprises.programs", str(out), *asked]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | QUIET, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    return {
        file.stem: collectives(file, axes=json.loads((out / f"{file.stem.partition('.')[0]}.axes").read_text()))
        for file in sorted(out.glob("*.hlo"))
    }
