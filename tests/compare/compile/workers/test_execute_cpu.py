"""Programs run on jaxlib's own runtime, as a process: what is recorded, and what is refused."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from meshes.case import Case
from tests.places import ROOT
from tests.twins.recorded import (
    LAWS,
    TINY_STEP,
    CarriedProgram,
    ProfileRecord,
    cache_aliases,
    check_about,
    declared_shapes,
)

pytestmark = pytest.mark.skipif(find_spec("jaxlib") is None, reason="jaxlib is not installed")

TOY = """
module @toy attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(
      %x: tensor<4x64xbf16> {mhlo.sharding = "{devices=[1,8]0,1,2,3,4,5,6,7}"},
      %w: tensor<64x32xbf16> {mhlo.sharding = "{devices=[8,1]0,1,2,3,4,5,6,7}"},
      %kept: tensor<4x32xbf16> {mhlo.sharding = "{replicated}", tf.aliasing_output = 1 : i32}
  ) -> (tensor<4xi32> {mhlo.sharding = "{replicated}"}, tensor<4x32xbf16> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x64xbf16>, tensor<64x32xbf16>) -> tensor<4x32xbf16>
    %1 = stablehlo.add %0, %kept : tensor<4x32xbf16>
    %2 = stablehlo.constant dense<7> : tensor<4xi32>
    return %2, %1 : tensor<4xi32>, tensor<4x32xbf16>
  }
}
"""  # noqa: E501
"""A matmul over a split dim: one all-reduce on eight devices.  Its second result overwrites its third argument."""


def row(name: str, role: str, dims: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "role": role, "dims": dims, "shape": list(shape), "dtype": "bf16"}


ABOUT = {
    "arm": "toy",
    "phase": "decode",
    "compile_options": {
        "num_replicas": 1,
        "num_partitions": 8,
        "use_spmd_partitioning": True,
        "use_shardy_partitioner": False,
    },
    "parameters": [
        row("x", "input", "batch embed", 4, 64),
        row("w", "weight", "embed vocab", 64, 32),
        row("cache.k", "weight", "batch vocab", 4, 32),
    ],
    "outputs": [row("ids", "", "batch", 4), row("cache.k", "", "batch vocab", 4, 32)],
}


def python(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    # JAX, which may be in the process of the tests, sets it for all.
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def execute(program: Path, out: Path) -> subprocess.CompletedProcess[str]:
    out.mkdir(exist_ok=True)
    (out / "request.json").write_text(json.dumps({"program": str(program)}))
    return python("-m", "compare.compile.workers.execute_cpu", out / "request.json", out)


def toy(folder: Path, *, text: str = TOY, **about: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "program.mlirbc").write_text(text)
    (folder / "about.json").write_text(json.dumps(ABOUT | about))
    return folder


def test_a_program_written_by_hand_runs_on_all_its_devices(tmp_path: Path) -> None:
    done = execute(toy(tmp_path / "toy"), tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    said = [json.loads(line)["stage"] for line in done.stdout.splitlines()]
    assert said == ["import", "compile", "load", "warm up", "record", "write"]
    profile = tmp_path / "out/trace/plugins/profile/decode/toy.xplane.pb"
    found = ProfileRecord.read(profile)
    assert [(step.name, step.number) for step in found.steps] == [("decode", number) for number in range(5)]
    assert found.executions == [{("all-reduce", device): 1 for device in range(8)}] * 5
    assert (found.outside, found.python_frames) == (0, 0)
    assert CarriedProgram.read(profile).overwritten == {1: 2}


@pytest.mark.slow
@pytest.mark.parametrize(("arm", "package", "phase"), [("jax", "jax", "prefill"), ("torchxla", "torch_xla", "decode")])
def test_an_arms_program_runs_as_it_was_lowered(arm: str, package: str, phase: str, tmp_path: Path) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    case = Case.read("dp2pp2tp2", model_name="tiny", seq=32, attention="einsum", phases=(phase,))
    (tmp_path / "case.json").write_text(case.to_json())
    done = python("-m", f"{arm}_impl.lower", tmp_path / "case.json", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    lowered = json.loads((tmp_path / "about.json").read_text())
    done = execute(tmp_path, tmp_path / "out")
    assert done.returncode == 0, done.stderr[-3000:]
    profile = tmp_path / f"out/trace/plugins/profile/{phase}/{arm}.xplane.pb"
    found = ProfileRecord.read(profile)
    assert found.executions == [{(kind, device): n for kind, n in TINY_STEP.items() for device in range(8)}] * 5
    assert found.outside == 0
    carried = CarriedProgram.read(profile)
    assert carried.rows == LAWS
    assert carried.parameters == declared_shapes(lowered, axes=case.mesh.axes)
    assert carried.overwritten == cache_aliases(lowered)
    about = json.loads((tmp_path / "out/about.json").read_text())
    assert {name: about[name] for name in lowered if name not in ("versions", "seconds")} == {
        name: value for name, value in lowered.items() if name not in ("versions", "seconds")
    }
    check_about(about, arm=arm, phase=phase, runtime="jaxlib")


def test_a_request_that_cannot_be_met_is_refused_in_one_line(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    asked = {
        "{": "cannot read the request",
        '{"program": "x", "more": 1}': "needs exactly the fields program",
        '{"program": 3}': "needs exactly the fields program",
        json.dumps({"program": str(tmp_path)}): "has no program.mlirbc",
    }
    for text, says in asked.items():
        (out / "request.json").write_text(text)
        done = python("-m", "compare.compile.workers.execute_cpu", out / "request.json", out)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert says in line
    assert python("-m", "compare.compile.workers.execute_cpu").returncode == 2


BAD = {
    "the program is not StableHLO": {"text": "module {"},
    "about.json does not say compile_options": {"compile_options": None},
    "unknown compile option 'fast'": {"compile_options": {"num_partitions": 8, "fast": True}},
    "about.json does not fit the program: it has 3 parameters and 2 results": {"parameters": ABOUT["parameters"][:2]},
    "num_partitions is 0": {"compile_options": {"num_partitions": 0}},
}


@pytest.mark.parametrize("says", BAD)
def test_a_program_and_an_about_that_do_not_fit_are_refused_in_one_line(says: str, tmp_path: Path) -> None:
    program = toy(tmp_path / "toy", **BAD[says])
    about = {name: value for name, value in json.loads((program / "about.json").read_text()).items() if value}
    (program / "about.json").write_text(json.dumps(about))
    done = execute(program, tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    program = toy(tmp_path / "toy")
    (tmp_path / "request.json").write_text(json.dumps({"program": str(program)}))
    (tmp_path / "file").write_text("")
    done = python("-m", "compare.compile.workers.execute_cpu", tmp_path / "request.json", tmp_path / "file")
    assert done.returncode == 1
    assert done.stderr == f"cannot write to {tmp_path / 'file'}: Not a directory\n"
