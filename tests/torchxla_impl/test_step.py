"""The step on eight devices: declared shardings are the actual ones, and the module holds the table of weights."""

import json
from pathlib import Path

import pytest

from meshes.case import Case
from tests.torchxla_impl.workers import script

CASES = (("tp8", "decode"), ("dp2tp4", "decode"), ("tp4pp2", "prefill"), ("dp2pp2tp2", "decode"))


@pytest.mark.slow
@pytest.mark.parametrize(("mesh", "phase"), CASES, ids=[" ".join(row) for row in CASES])
def test_every_weight_and_cache_is_sharded_as_declared(mesh: str, phase: str, tmp_path: Path) -> None:
    """Byte for byte: each device holds the slice that its coordinates name, and the caches that come out, too."""
    case = Case.read(mesh, model_name="tiny", phases=(phase,), dtype="f32", seq=16)
    (tmp_path / "case.json").write_text(case.to_json())
    told = json.loads(script("actual.py", str(tmp_path / "case.json")))
    assert len(told["tensors"]) == 12 + 2 + 2
    for name, tensor in told["tensors"].items():
        assert tensor["devices"] == 8, name
        assert tensor["right"], name
    tp, pp, dp = case.mesh.tp, case.mesh.pp, case.mesh.dp
    assert told["tensors"]["layers.attention.q"]["shard"] == [4 // pp, 1, 128, 16 // tp, 16]
    batch = 8 // case.microbatches // dp
    assert told["tensors"]["cache.k out"]["shard"] == [4 // pp * case.microbatches, 1, batch, 128, 128 // tp]
    assert told["module"] == told["table"]
    assert len(told["ids"]) == 8
