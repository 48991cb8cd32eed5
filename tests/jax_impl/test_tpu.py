"""The compiled TPU program: the one that JAX itself would run, with parameters sharded and overwritten as declared."""

import json
import re
from math import prod
from pathlib import Path
from typing import Any

import pytest

from meshes.case import Case
from tests.jax_impl.tpu import compile_case, needs_libtpu, run

pytestmark = [needs_libtpu, pytest.mark.slow]


def instructions(text: str) -> list[str]:
    """Every instruction and header, without the tables of source frames."""
    lines = (re.sub(r", metadata=\{[^}]*\}| stack_frame_id=\d+", "", line) for line in text.splitlines())
    return [line for line in lines if re.match(r"\s*(%|ROOT |ENTRY |HloModule |\})", line)]


CASES = (("dp2pp2tp2", "native", "decode"), ("tp4pp2", "gspmd", "prefill"), ("cp4tp2", "native", "prefill"))


@pytest.mark.parametrize(("mesh", "partitioner", "phase"), CASES, ids=[" ".join(row) for row in CASES])
def test_a_program_of_an_abstract_mesh_is_the_one_of_the_chips(
    mesh: str, partitioner: str, phase: str, tmp_path: Path
) -> None:
    """Instruction for instruction; so the options in about.json are those of `lowered.compile()`, too."""
    case = Case.read(mesh, model_name="tiny", phases=(phase,), partitioner=partitioner)
    text = compile_case(case, tmp_path)
    run(str(Path(__file__).with_name("on_topology.py")), str(tmp_path / "case.json"), str(tmp_path / "jax.hlo"))
    assert instructions(text) == instructions((tmp_path / "jax.hlo").read_text())
    assert len(instructions(text)) > 300


@pytest.mark.parametrize("mesh", ["tp8", "dp2pp2tp2", "pp2cp2tp2+sp"])
def test_entry_parameters_are_sharded_and_overwritten_as_declared(mesh: str, tmp_path: Path) -> None:
    case = Case.read(mesh, model_name="tiny", phases=("decode",))
    text = compile_case(case, tmp_path)
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
    ways = [prod(case.mesh.axes[axis] for axis in axes.split(",")) if axes else 1 for axes in row["axes"]]
    return ",".join(str(size // n) for size, n in zip(row["shape"], ways, strict=True))
