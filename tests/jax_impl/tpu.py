"""Compiling one case of the JAX twin for its chips, as a run does: lowered and compiled in processes of their own."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from meshes.assignment import assign_chips
from meshes.case import Case
from meshes.scopes import SCOPES

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "PYTHONPATH": str(ROOT),
}

needs_libtpu = pytest.mark.skipif(find_spec("libtpu") is None, reason="libtpu is not installed")


def run(*command: str) -> None:
    """Python with these arguments; the test fails with what it said."""
    done = subprocess.run(
        [sys.executable, *command], env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def compile_case(case: Case, out: Path) -> str:
    """The HLO: lowered for an abstract mesh, compiled for the chips."""
    (out / "case.json").write_text(case.to_json())
    run("-m", "jax_impl.lower", str(out / "case.json"), str(out))
    request = {
        "program": str(out / "program.mlirbc"),
        "topology": case.topology.slice_name,
        "num_slices": case.topology.slices,
        "places": assign_chips(case.plan),
        "compile_options": json.loads((out / "about.json").read_text())["compile_options"],
        "strip": [f"{ROOT}/"],
        "passes": False,
    }
    (out / "request.json").write_text(json.dumps(request))
    run("-m", "compare.compile.workers.compile_request", str(out / "request.json"), str(out))
    return gzip.decompress((out / "optimized.hlo.gz").read_bytes()).decode()


def count_collectives(case: Case, out: Path) -> Counter[tuple[str, str, int, int]]:
    """Scope, kind@axes, executions and payload bytes of every collective, counted."""
    pipeline = [scope for scope in SCOPES if scope.startswith("pipeline.")]
    required = [SimpleNamespace(scope=scope, kind="collective-permute", axes="pp") for scope in pipeline]
    rows = collectives(read(compile_case(case, out)), case.mesh.split_axes, contract=required)
    return Counter((row.scope, f"{row.kind}@{row.axes}", row.executions, row.payload_bytes) for row in rows)
