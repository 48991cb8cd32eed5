"""The step on eight devices: declared shardings are the actual ones, and the module holds the table of weights."""

import json
from typing import Any

import pytest

from meshes.case import Case
from tests.torchxla_impl.workers import script

CASES = (
    ("tp8", "decode", "tiny"),
    ("dp2tp4", "decode", "tiny"),
    ("tp4pp2", "prefill", "tiny"),
    ("pp2cp2tp2+sp", "prefill", "tiny"),
    ("cp2ep2tp2", "decode", "tiny-moe"),
)


def case_of(mesh: str, phase: str, model: str) -> Case:
    return Case.read(mesh, model_name=model, phases=(phase,), dtype="f32", seq=16)


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What stands on the devices in each case, by its JSON; from one process: PyTorch/XLA takes seconds to start."""
    out, cases = tmp_path_factory.mktemp("actual"), [case_of(*row) for row in CASES]
    files = [out / f"{number}.json" for number in range(len(cases))]
    for file, case in zip(files, cases, strict=True):
        file.write_text(case.to_json())
    lines = script("actual.py", out, *files).splitlines()
    return {case.to_json(): json.loads(line) for case, line in zip(cases, lines, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize(("mesh", "phase", "model"), CASES, ids=[" ".join(row[:2]) for row in CASES])
def test_every_weight_and_cache_is_sharded_as_declared(
    mesh: str, phase: str, model: str, placed: dict[str, Any]
) -> None:
    """Byte for byte: each device holds the slice that its coordinates name, and the caches that come out, too."""
    case = case_of(mesh, phase, model)
    results = placed[case.to_json()]
    # Experts have a router more than a feed-forward.
    assert len(results["tensors"]) == (13 if case.model.experts else 12) + 2 + 2
    for name, tensor in results["tensors"].items():
        assert tensor["devices"] == 8, name
        assert tensor["right"], name
    at = case.mesh
    assert results["tensors"]["layers.attention.q"]["shard"] == [4 // at.pp, 1, 16 // at.tp, 128, 16]
    if case.model.experts:
        assert results["tensors"]["layers.moe.down"]["shard"] == [4, 1, 8 // at.ep, 256 // at.tp, 128]
    batch = 8 // case.microbatches // at.dp // at.ep
    assert results["tensors"]["cache.k out"]["shard"] == [4 // at.pp * case.microbatches, 1, batch, 128, 128 // at.tp]
    assert results["module"] == results["table"]
    assert len(results["ids"]) == 8
