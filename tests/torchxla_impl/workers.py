"""The workers' doors, and scripts beside the tests, in processes of their own."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from meshes.assignment import assign_chips
from meshes.case import Case

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
        return collectives(read(self.text), self.case.mesh.axes)


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip


def script(name: str, *arguments: str) -> str:
    """What a script beside the tests prints."""
    done = run([str(Path(__file__).with_name(name)), *arguments])
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def lower(case: Case, out: Path) -> subprocess.CompletedProcess[str]:
    out.mkdir(exist_ok=True)
    (out / "case.json").write_text(case.to_json())
    return run(["-m", "torchxla_impl.lower", str(out / "case.json"), str(out)])


def compiled(case: Case, out: Path) -> Program:
    """Lowered by the twin, compiled for the case's slice."""
    done = lower(case, out)
    assert done.returncode == 0, done.stderr[-3000:]
    return compiled_program(case, out)


def compiled_program(case: Case, out: Path) -> Program:
    """OUT/program.mlirbc, compiled with the options of OUT/about.json."""
    about = json.loads((out / "about.json").read_text())
    request = {
        "program": str(out / "program.mlirbc"),
        "topology": case.topology.slice_name,
        "num_slices": case.topology.slices,
        "places": assign_chips(case.plan),
        "compile_options": about["compile_options"],
        "strip": [f"{ROOT}/"],
        "passes": False,
    }
    (out / "request.json").write_text(json.dumps(request))
    done = run(["-m", "compare.compile.workers.compile_request", str(out / "request.json"), str(out)])
    assert done.returncode == 0, done.stderr[-3000:]
    return Program(case=case, text=gzip.decompress((out / "optimized.hlo.gz").read_bytes()).decode(), about=about)
