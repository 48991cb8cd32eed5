"""The worker: what it writes and says, how it refuses, and that shapes are enough for 70B."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from meshes.case import Case
from tests.kept import run_kept
from tests.places import ROOT

pytestmark = pytest.mark.slow

MEASURED = """
import sys
from jax_impl.lower import main
status = main(sys.argv[1:])
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(int(peak.split()[1]) // 1024, file=sys.stderr)
sys.exit(status)
"""
"""The worker, which says at the end how many MiB it held at most: itself, not whoever forked it, as getrusage would."""


def lower(case: Case, out: Path) -> subprocess.CompletedProcess[str]:
    (out / "case.json").write_text(case.to_json())
    command = ("-c", MEASURED, out / "case.json", out)
    return run_kept(out, *command, sources=("meshes", "jax_impl"), given={"JAX_PLATFORMS": "cpu"})


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_it_writes_a_program_and_says_what_it_is(tmp_path: Path) -> None:
    case = Case.read("dp2pp2tp2", model_name="tiny", phases=("decode",))
    done = lower(case, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["stage"] for line in done.stdout.splitlines()] == ["import", "trace", "lower", "write"]
    assert (tmp_path / "program.mlirbc").read_bytes()[:2] == b"ML"
    about = json.loads((tmp_path / "about.json").read_text())
    assert (about["arm"], about["phase"], about["partitioner"]) == ("jax", "decode", "shardy")
    named = {row["name"]: row for row in about["parameters"]}
    assert [row["index"] for row in about["parameters"]] == list(range(16))
    row = named["layers.attention.k"]
    assert (row["role"], row["dims"], row["dtype"]) == ("weight", "layers stages kv_heads embed head_dim", "bf16")
    assert (row["shape"], row["axes"]) == ([2, 2, 8, 128, 16], [None, "pp", "tp", None, None])
    # 2 layers a stage · 4 slots, 2 stages, 8/4 sequences, 1025 positions rounded up, 8 heads of 16
    assert named["cache.v"]["shape"] == [8, 2, 2, 1152, 128]
    assert named["cache.v"]["axes"] == [None, "pp", "dp,ep", "cp", "tp"]
    assert [row["name"] for row in about["outputs"]] == ["ids", "cache.k", "cache.v"]
    options = about["compile_options"]
    assert (options["num_replicas"], options["num_partitions"]) == (1, 8)
    # Every input and output is sharded as declared: nothing is left to propagation.
    assert options["allow_spmd_sharding_propagation_to_parameters"] == [False] * 16
    assert options["allow_spmd_sharding_propagation_to_output"] == [False] * 3


def test_the_same_case_gives_the_same_program(tmp_path: Path) -> None:
    """Of two processes, one of which may have run earlier."""
    case = Case.read("tp4pp2", model_name="tiny", phases=("prefill",))
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    assert lower(case, one).returncode == 0
    two.mkdir()
    assert run(["-c", MEASURED, str(one / "case.json"), str(two)]).returncode == 0
    programs = [(out / "program.mlirbc").read_bytes() for out in (one, two)]
    assert programs[0] == programs[1]
    assert b"jax_impl/decoder/layers.py" in programs[0]
    assert b"jax_impl/sharding/" not in programs[0], "a pin bears the line of the model"
    assert str(ROOT).encode() not in programs[0]
    assert b"/site-packages" not in programs[0]


def test_gspmd_is_asked_for_by_the_case(tmp_path: Path) -> None:
    case = Case.read("tp8", model_name="tiny", phases=("decode",), partitioner="gspmd")
    assert lower(case, tmp_path).returncode == 0
    about = json.loads((tmp_path / "about.json").read_text())
    assert about["partitioner"] == "gspmd"
    assert about["compile_options"]["use_shardy_partitioner"] is False
    assert b"sdy" not in (tmp_path / "program.mlirbc").read_bytes()


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_70b_is_lowered_from_shapes_alone(phase: str, tmp_path: Path) -> None:
    """141 GB of weights; the worker holds less than 1 GiB."""
    done = lower(Case.read("tp8pp4-v5p.toml", model_name="llama-3.1-70b", phases=(phase,)), tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.splitlines()[-1]) < 1024


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(Case.read("tp8", model_name="tiny", phases=("decode",)).to_json())
    done = run(["-m", "jax_impl.lower", str(tmp_path / "case.json"), str(tmp_path / "none")])
    assert done.returncode == 1
    assert done.stderr == f"cannot write to {tmp_path / 'none'}: No such file or directory\n"


def test_a_case_of_two_phases_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(Case.read("tp8", model_name="tiny").to_json())
    done = run(["-m", "jax_impl.lower", str(tmp_path / "case.json"), str(tmp_path)])
    assert done.returncode == 2
    assert done.stderr == "this case has the phases prefill, decode; a program is of one phase\n"


def test_what_is_no_case_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text("{")
    for command in ([str(tmp_path / "case.json"), str(tmp_path)], [str(tmp_path / "none.json"), str(tmp_path)], []):
        done = run(["-m", "jax_impl.lower", *command])
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1, done.stderr
