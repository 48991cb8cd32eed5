"""Large weights reach the devices piece by piece, and are whole and split as declared."""

import json
from pathlib import Path

import pytest

from tests.meshes.checkpoint.hub import config_of, state_of, write
from tests.torchxla_impl.workers import script

MESHES = ("dp2pp2tp2", "pp2ep4")
CONFIG = config_of("qwen2_moe", num_attention_heads=24, num_key_value_heads=6, shared_expert_intermediate_size=16)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_weights_that_are_brought_in_pieces_are_whole(dtype: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "hub", CONFIG, state_of(CONFIG), dtype=dtype)
    results = json.loads(script("pieces.py", str(folder), dtype, *MESHES))
    assert set(results) == set(MESHES)
    for mesh, found in results.items():
        assert not found["wrong"], mesh
        assert found["pieces"] > 3 * found["weights"], mesh
