"""The compiled TPU program: the one that JAX itself would run, with parameters sharded and overwritten as declared."""

import gzip
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import pytest

from meshes.case import Case
from tests.kept import describe, fill
from tests.laws.workers import run
from tests.planted.programs import Job, make

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("libtpu") is None, reason="libtpu is not installed"),
]


def tiny(mesh: str, phase: str, partitioner: str = "native") -> Case:
    return Case.read(mesh, model_name="tiny", phases=(phase,), partitioner=partitioner)


COMPARED = (
    tiny("dp2pp2tp2", "decode"),
    tiny("tp4pp2", "prefill", "gspmd"),
    tiny("cp4tp2", "prefill"),
)
DECLARED = tuple(tiny(mesh, "decode") for mesh in ("tp8", "dp2pp2tp2", "pp2cp2tp2+sp"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """By the name of the case: lowered for an abstract mesh and compiled for the chips, as a run does."""
    jobs = {case.name: Job("jax", case) for case in (*COMPARED, *DECLARED)}
    folders = make(jobs.values(), tmp_path_factory.mktemp("programs"))
    return {name: folders[job.key] for name, job in jobs.items()}


@pytest.fixture(scope="module")
def on_chips(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """By the name of the case: lowered for the chips and compiled by JAX itself."""
    folders = {case.name: tmp_path_factory.mktemp("chips") for case in COMPARED}
    for case in COMPARED:
        folder = folders[case.name]
        (folder / "case.json").write_text(case.to_json())
        describe(folder, "meshes", "jax_impl", "tests/jax_impl/on_topology.py")
    fill(
        list(folders.values()),
        lambda missing: run("tests.jax_impl.on_topology", folders=missing),
        results=("jax.hlo",),
    )
    return folders


def read_text(folder: Path) -> str:
    return gzip.decompress((folder / "optimized.hlo.gz").read_bytes()).decode()


def instructions(text: str) -> list[str]:
    """Every instruction and header, without the tables of source frames."""
    lines = (re.sub(r", metadata=\{[^}]*\}| stack_frame_id=\d+", "", line) for line in text.splitlines())
    return [line for line in lines if re.match(r"\s*(%|ROOT |ENTRY |HloModule |\})", line)]


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_a_program_of_an_abstract_mesh_is_the_one_of_the_chips(
    case: Case, programs: Mapping[str, Path], on_chips: Mapping[str, Path]
) -> None:
    """Instruction for instruction; so the options in about.json are those of `lowered.compile()`, too."""
    ours = instructions(read_text(programs[case.name]))
    assert ours == instructions((on_chips[case.name] / "jax.hlo").read_text())
    assert len(ours) > 300


@pytest.mark.parametrize("case", DECLARED, ids=lambda case: case.name)
def test_entry_parameters_are_sharded_and_overwritten_as_declared(case: Case, programs: Mapping[str, Path]) -> None:
    text = read_text(programs[case.name])
    about = json.loads((programs[case.name] / "about.json").read_text())
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
