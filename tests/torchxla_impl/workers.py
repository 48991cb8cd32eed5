"""The workers' doors, and scripts beside the tests, in processes of their own."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.contract.reference_algorithms import required_rows
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.run.tasks import COMPILER_SOURCES
from meshes.case import Case
from tests.kept import describe, fill
from tests.laws import workers
from tests.xla_flags import quick_environment

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "PYTHONPATH": str(ROOT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiled TPU program, and what its twin said of it."""

    case: Case
    text: str
    about: dict[str, Any]

    @property
    def rows(self) -> list[Collective]:
        return collectives(read(self.text), self.case.mesh.axes, contract=required_rows(self.case))


def run(command: Sequence[str], *, environment: Mapping[str, str] = ENVIRONMENT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )


def script(name: str, *arguments: str) -> str:
    """What a script beside the tests prints; it runs its programs on virtual CPU devices, if any."""
    done = run([str(Path(__file__).with_name(name)), *arguments], environment=quick_environment() | ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def lower(case: Case, out: Path) -> subprocess.CompletedProcess[str]:
    out.mkdir(exist_ok=True)
    (out / "case.json").write_text(case.to_json())
    return run(["-m", "torchxla_impl.lower", str(out / "case.json"), str(out)])


def compile_cases(cases: Sequence[Case], out: Path) -> dict[str, Path]:
    """The folder of each case, by its JSON: all lowered in one process, all compiled for their slices in one.

    Each folder has case.json, program.mlirbc, about.json and optimized.hlo.gz; or failed.txt, why it has not.
    """
    texts = dict.fromkeys(case.to_json() for case in cases)
    folders = {text: out / str(number) for number, text in enumerate(texts)}
    for text, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "case.json").write_text(text)
        describe(folder, "torchxla_impl", *COMPILER_SOURCES, "tests/laws/lowering.py", "tests/planted/compiling.py")
    fill(list(folders.values()), _make, results=("about.json", "compiled.json", "optimized.hlo.gz"))
    return folders


def _make(folders: Sequence[Path]) -> None:
    workers.run("tests.laws.lowering", "torchxla_impl", folders=folders)
    workers.run("tests.planted.compiling", folders=folders)


def read_program(case: Case, folder: Path) -> Program:
    """What `compile_cases` made of a case."""
    failed = folder / workers.FAILED
    assert not failed.exists(), failed.read_text()
    text = gzip.decompress((folder / "optimized.hlo.gz").read_bytes()).decode()
    return Program(case=case, text=text, about=json.loads((folder / "about.json").read_text()))
