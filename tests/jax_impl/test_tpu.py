"""The compiled TPU program: the one that JAX itself would run, with parameters sharded and overwritten as declared."""

import gzip
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from meshes.assignment import chips
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

pytestmark = pytest.mark.skipif(find_spec("libtpu") is None, reason="libtpu is not installed")


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, *command], env=ENVIRONMENT, capture_output=True, text=True, timeout=300,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def compiled(case: Case, out: Path) -> str:
    """Through the workers' door: lowered for an abstract mesh, compiled for the chips."""
    (out / "case.json").write_text(case.to_json())
    run("-m", "jax_impl.lower", str(out / "case.json"), str(out))
    request = {
        "program": str(out / "program.mlirbc"),
        "topology": case.topology.slice_name,
        "num_slices": case.topology.slices,
        "places": chips(case.plan),
        "compile_options": json.loads((out / "about.json").read_text())["compile_options"],
        "strip": [f"{ROOT}/"],
    }
    (out / "request.json").write_text(json.dumps(request))
    run("-m", "compare.program.aot", str(out / "request.json"), str(out))
    return gzip.decompress((out / "optimized.hlo.gz").read_bytes()).decode()


def instructions(text: str) -> list[str]:
    """Every instruction and header, without the tables of source frames."""
    lines = (re.sub(r", metadata=\{[^}]*\}| stack_frame_id=\d+", "", line) for line in text.splitlines())
    return [line for line in lines if re.match(r"\s*(%|ROOT |ENTRY |HloModule |\})", line)]


CASES = (("dp2pp2tp2", "native", "decode"), ("tp4pp2", "gspmd", "prefill"))


@pytest.mark.slow
@pytest.mark.parametrize(("mesh", "partitioner", "phase"), CASES, ids=[" ".join(row) for row in CASES])
def test_a_program_of_an_abstract_mesh_is_the_one_of_the_chips(
    mesh: str, partitioner: str, phase: str, tmp_path: Path
) -> None:
    """Instruction for instruction; so the options in about.json are those of `lowered.compile()`, too."""
    case = Case.read(mesh, model_name="tiny", phases=(phase,), partitioner=partitioner)
    text = compiled(case, tmp_path)
    run(str(Path(__file__).with_name("on_topology.py")), str(tmp_path / "case.json"), str(tmp_path / "jax.hlo"))
    assert instructions(text) == instructions((tmp_path / "jax.hlo").read_text())
    assert len(instructions(text)) > 300


@pytest.mark.slow
@pytest.mark.parametrize("mesh", ["tp8", "dp2pp2tp2"])
def test_entry_parameters_are_sharded_and_overwritten_as_declared(mesh: str, tmp_path: Path) -> None:
    case = Case.read(mesh, model_name="tiny", phases=("decode",))
    text = compiled(case, tmp_path)
    about = json.loads((tmp_path / "about.json").read_text())
    declared = [f"{row['dtype']}[{local_shape(row, case)}]" for row in about["parameters"]]
    entry = re.search(r"entry_computation_layout=\{\((.*?)\)->", text)
    assert entry is not None
    assert re.findall(r"[a-z]+\d+\[[\d,]*\]", entry[1]) == declared
    aliases = re.findall(r"\{(\d)\}: \((\d+), \{\}", text.split("entry_computation_layout")[0])
    caches = [str(row["index"]) for row in about["parameters"] if row["role"] == "cache"]
    assert aliases == [("1", caches[0]), ("2", caches[1])]


def local_shape(row: dict[str, Any], case: Case) -> str:
    """What one device holds."""
    return ",".join(str(n // case.mesh.axes.get(axis, 1)) for n, axis in zip(row["shape"], row["axes"], strict=True))
