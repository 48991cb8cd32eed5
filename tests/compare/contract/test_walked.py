"""The contract against a step that is walked message by message, on every product of parallelisms."""

import pytest

from compare.contract.reference_algorithms import required_rows
from meshes.case import Case
from tests.compare.contract.walked import Walk

DENSE = [
    "tp8",
    "tp4pp2",
    "dp2pp2tp2",
    "tp8+sp",
    "tp4pp2+sp",
    "cp4tp2",
    "cp8",
    "dp2cp2tp2",
    "pp2cp2tp2",
    "pp2cp4",
    "cp2tp4+sp",
    "dp2tp4+sp",
    "pp2cp2tp2+sp",
    "dp2pp2tp2+sp",
]
EXPERTS = [
    "dp2ep4",
    "tp2ep4",
    "pp2ep4",
    "ep8",
    "cp2ep4",
    "cp2ep2tp2",
    "ep4tp2+sp",
    "pp2ep2tp2",
    "tp8",
    "cp4ep2",
    "pp2ep2tp2+sp",
    "cp2ep2tp2+sp",
]
CASES = [
    *[(mesh, {"model_name": "llama-3.1-8b"}) for mesh in DENSE],
    *[(mesh, {"model_name": "mixtral-8x7b", "batch": 32}) for mesh in EXPERTS],
    *[(mesh, {"model_name": "qwen3-30b-a3b", "batch": 32, "capacity": None}) for mesh in EXPERTS],
    *[
        (mesh, {"model_name": "qwen1.5-moe-a2.7b", "batch": 16, "capacity": 2.0, "dtype": "f32"})
        for mesh in ("ep2tp2", "cp2ep2tp2", "ep4tp2+sp", "tp4+sp")
    ],
    ("dp2cp2ep2tp2", {"model_name": "mixtral-8x7b", "batch": 16}),
    ("cp2tp8", {"model_name": "qwen3-30b-a3b"}),
    ("cp2tp4", {"model_name": "phi-4"}),
]


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize(("mesh", "options"), CASES, ids=[f"{mesh}-{o['model_name']}" for mesh, o in CASES])
def test_the_contract_moves_what_the_devices_send(mesh, options, phase):
    case = Case.read(mesh, **options, seq=128, phases=(phase,))
    walked = Walk(case).walk()
    required = {(row.scope, row.kind, row.axes): row.step_wire_bytes for row in required_rows(case)}
    assert len(required) == len(required_rows(case))
    assert {what: float(amount) for what, amount in walked.items()} == pytest.approx(required, abs=0.5)
