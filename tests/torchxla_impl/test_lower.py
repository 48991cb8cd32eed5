"""The worker: what it writes and says, how it refuses, and that shapes are enough for 70B."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from meshes.case import Case
from tests.torchxla_impl.workers import ENVIRONMENT, ROOT, lower, run, run_twin

MEASURED = """
import sys
from torchxla_impl.lower import main
status = main(sys.argv[1:])
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(int(peak.split()[1]) // 1024, file=sys.stderr)
sys.exit(status)
"""
"""The worker, which says at the end how many MiB it held at most: itself, not whoever forked it, as getrusage would."""


@pytest.mark.slow
def test_it_writes_a_program_and_says_what_it_is(tmp_path: Path) -> None:
    done = lower(Case.read("dp2pp2tp2", model_name="tiny", phases=("decode",)), tmp_path)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["stage"] for line in done.stdout.splitlines()] == ["import", "trace", "lower", "write"]
    assert (tmp_path / "program.mlirbc").read_bytes()[:2] == b"ML"
    about = json.loads((tmp_path / "about.json").read_text())
    assert (about["arm"], about["phase"], about["partitioner"]) == ("torchxla", "decode", "gspmd")
    named = {row["name"]: row for row in about["parameters"]}
    assert [row["index"] for row in about["parameters"]] == list(range(16))
    row = named["layers.attention.k"]
    assert (row["role"], row["dims"], row["dtype"]) == ("weight", "layers stages kv_heads embed head_dim", "bf16")
    assert (row["shape"], row["axes"]) == ([2, 2, 8, 128, 16], [None, "pp", "tp", None, None])
    # 2 layers a stage · 4 slots, 2 stages, 8/4 sequences, 1025 positions rounded up, 8 heads of 16
    assert named["cache.v"]["shape"] == [8, 2, 2, 1152, 128]
    assert named["cache.v"]["axes"] == [None, "pp", "dp,ep", "cp", "tp"]
    assert (named["position"]["role"], named["position"]["dtype"]) == ("input", "s32")
    assert [row["name"] for row in about["outputs"]] == ["ids", "cache.k", "cache.v"]
    options = about["compile_options"]
    assert (options["num_replicas"], options["num_partitions"]) == (1, 8)
    # torch_xla's runtime marks parameters, and lets GSPMD choose for outputs.
    assert options["allow_spmd_sharding_propagation_to_parameters"] == [False]
    assert options["allow_spmd_sharding_propagation_to_output"] == [True]


@pytest.mark.slow
def test_the_same_case_gives_the_same_program_wherever_the_environment_lies(tmp_path: Path) -> None:
    """Beside the checkout, or inside of it, as `python3 -m venv .venv` puts it: here as a link."""
    case = Case.read("tp4pp2", model_name="tiny", phases=("prefill",))
    checkout, out = tmp_path / "checkout", tmp_path / "out"
    for room in ("meshes", "torchxla_impl"):
        shutil.copytree(ROOT / room, checkout / room)
    inside = checkout / ".venv/lib/python3/site-packages"
    inside.parent.mkdir(parents=True)
    inside.symlink_to(Path(torch_folder()).parent)
    out.mkdir()
    (out / "case.json").write_text(case.to_json())
    command = [sys.executable, "-m", "torchxla_impl.lower", str(out / "case.json"), str(out)]
    path = ENVIRONMENT | {"PYTHONPATH": f"{checkout}:{inside}"}
    done = subprocess.run(command, env=path, cwd=checkout, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert lower(case, tmp_path / "beside").returncode == 0
    program = (out / "program.mlirbc").read_bytes()
    assert program == (tmp_path / "beside/program.mlirbc").read_bytes()
    assert b"site-packages/torch/functional.py" in program
    assert b"torchxla_impl/decoder/attention.py" in program
    assert b"/site-packages" not in program
    assert not [place for place in (ROOT, tmp_path) if str(place).encode() in program]


def torch_folder() -> str:
    """Without importing it: one framework a process."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations
    return spec.submodule_search_locations[0]


@pytest.mark.slow
def test_a_single_device_is_a_mesh(tmp_path: Path) -> None:
    done = lower(Case.read("tp1", model_name="tiny", phases=("decode",)), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_70b_is_lowered_from_shapes_alone(tmp_path: Path) -> None:
    """141 GB of weights; the worker holds less than 1.5 GiB."""
    case = Case.read("tp8pp4-v5p.toml", model_name="llama-3.1-70b", phases=("prefill",))
    (tmp_path / "case.json").write_text(case.to_json())
    done = run_twin(tmp_path, "-c", MEASURED, tmp_path / "case.json", tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.splitlines()[-1]) < 1536


@pytest.mark.slow
def test_what_manual_sharding_cannot_express_is_not_offered(tmp_path: Path) -> None:
    done = lower(Case.read("pp2cp2tp2+sp", model_name="tiny", phases=("decode",), style="explicit"), tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "style explicit is not offered by PyTorch/XLA 2.9 on mesh pp2cp2tp2+sp: its manual sharding has an all-reduce "
        "and a reduce-scatter alone, and this needs a permute for the pipeline's shift, a permute for the ring, an "
        "all-gather for the split stream; offered are dp and tp\n"
    )


def test_a_case_of_two_phases_is_refused_in_one_line(tmp_path: Path) -> None:
    done = lower(Case.read("tp8", model_name="tiny"), tmp_path)
    assert done.returncode == 2
    assert done.stderr == "this case has the phases prefill, decode; a program is of one phase\n"


def test_what_is_no_case_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text("{")
    for command in ([str(tmp_path / "case.json"), str(tmp_path)], [str(tmp_path / "none.json"), str(tmp_path)], []):
        done = run(["-m", "torchxla_impl.lower", *command])
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
