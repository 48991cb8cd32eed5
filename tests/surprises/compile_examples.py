"""What came of the programs of docs/surprises: compiled once, in a process a framework, and one to compile."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from compare.diff.own.api import collectives
from compare.diff.own.table import Table
from tests.kept import describe, fill
from tests.surprises.programs import EXAMPLES

ROOT = EXAMPLES.parents[1]
TORCH = (
    "fsdp",
    "mended_pytorch",
    "pytorch_all_gather",
    "pytorch_matmul",
    "pytorch_sharding_spec",
    "pytorch_whole_weights",
    "gradient_every_step",
    "gradient_not_split",
    "mended_pytorch_linear",
)
TORCHAX = ("pytorch_matmul_torchax",)
QUIET = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
}


def compile_examples(out: Path) -> Mapping[str, Table]:
    """`reshard.surprising` -> its table; without torchax, none of its examples."""
    torchax = TORCHAX if find_spec("torchax") else ()
    describe(
        out,
        "docs/surprises",
        "compare/diff/own",
        "compare/user_program",
        "compare/compile",
        "compare/hlo",
        "tests/surprises/programs.py",
        torchax=torchax,
    )
    fill([out], lambda folders: _make(out, torchax), results=("*.hlo", "*.axes"))
    return {
        file.stem: collectives(file, axes=json.loads((out / f"{file.stem.partition('.')[0]}.axes").read_text()))
        for file in sorted(out.glob("*.hlo"))
    }


def _make(out: Path, torchax: Sequence[str]) -> None:
    names = {file.stem for file in EXAMPLES.glob("*.py")}
    for chosen in (sorted(names - {*TORCH, *TORCHAX}), TORCH, torchax):
        if chosen:
            _run(out, chosen)
    _run(out, ())


def _run(out: Path, names: Sequence[str]) -> None:
    """Lower these examples, or compile what has been lowered."""
    command = [sys.executable, "-m", "tests.surprises.programs", str(out), *names]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | QUIET, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
