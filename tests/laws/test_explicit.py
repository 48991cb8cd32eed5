"""The proof of the contract: JAX's step with its collectives written by hand, compiled, sends that and nothing else."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from compare.report.model.about import About
from compare.report.programs import ProgramResult, judge_program
from compare.report.rows import sum_totals
from meshes.case import Case
from tests.laws.law import Program
from tests.laws.programs import Job, compile_jobs, read_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (find_spec("jax") and find_spec("libtpu")), reason="JAX or libtpu is not installed"),
]

EXPLICIT = Program(title="JAX, explicit", arm="jax_impl", partitioner="shardy", words={"style": "explicit"})

MESHES = {
    "dp2pp2tp2": "tiny",
    "tp2ep4": "tiny-moe",
    "pp2ep4": "tiny-moe",
    "pp2cp2tp2": "tiny",
    "cp2ep2tp2": "tiny-moe",
    "tp4pp2+sp": "tiny",
    "cp4tp2+sp": "tiny",
    "ep4tp2+sp": "tiny-moe",
}
"""Every axis with every other one, and a split stream with each."""

LONE = {("tp4pp2+sp", "prefill"): 4}
"""Batches of one sequence a microbatch: libtpu makes an all-reduce of the scatter of a lone matrix.

As it does of parts of a single tile, which cp4tp2+sp has in decode: 8 sequences of 128.
"""

ROWS = [
    pytest.param(mesh, phase, marks=[pytest.mark.long] if (place + (phase == "decode")) % 2 else [])
    for place, mesh in enumerate(MESHES)
    for phase in ("prefill", "decode")
]
"""A plain run compiles each mesh in one phase, by turns."""


def job(mesh: str, phase: str) -> Job:
    # Enough sequences for every expert and microbatch, and for a stream that tp splits in decode; or one a microbatch.
    batch = LONE.get((mesh, phase), 16)
    case = Case.read(mesh, model_name=MESHES[mesh], phases=(phase,), batch=batch, seq=256, style="explicit")
    return Job(EXPLICIT.arm, case, "tpu")


@pytest.fixture(scope="module")
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    words = [item.callspec.params for item in request.session.items if item.path == request.path]
    jobs = [job(each["mesh"], each["phase"]) for each in words]
    return compile_jobs(jobs, tmp_path_factory.mktemp("explicit"))


@pytest.mark.parametrize(("mesh", "phase"), ROWS)
def test_it_sends_exactly_the_contract(mesh: str, phase: str, folders: Mapping[str, Path]) -> None:
    wanted = job(mesh, phase)
    folder = folders[wanted.key]
    hlo, about = read_text(folder), json.loads((folder / "about.json").read_text())
    result = ProgramResult(
        arm="jax", phase=phase, cell="tpu+explicit", status="ok", about=About.from_json(about), hlo=hlo
    )
    cell = judge_program(wanted.case, result)
    assert [row for row in cell.judgement.verdicts if row.causes or row.collective.executions_are != "exact"] == []
    assert cell.judgement.served_bytes == tuple(row.step_wire_bytes for row in cell.contract)
    totals = sum_totals(cell.judgement, cell.contract)
    assert totals.wire_bytes == totals.inherent == sum(row.step_wire_bytes for row in cell.contract)
    emitted = {(verdict.collective.scope, verdict.collective.axes) for verdict in cell.judgement.verdicts}
    assert emitted == {(row.scope, row.axes) for row in cell.contract}
