"""Large weights reach the devices piece by piece, and are whole and split as declared."""

import json
from typing import Any

import pytest

from tests.meshes.checkpoint.hub import config_of, state_of, write
from tests.torchxla_impl.workers import script

MESHES = ("dp2pp2tp2", "pp2ep4")
CONFIG = config_of("qwen2_moe", num_attention_heads=24, num_key_value_heads=6, shared_expert_intermediate_size=16)


DTYPES = ("f32", "bf16")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each dtype and mesh, all in one process: PyTorch/XLA takes seconds to start."""
    out = tmp_path_factory.mktemp("pieces")
    folders = {dtype: str(write(out / dtype, CONFIG, state_of(CONFIG), dtype=dtype)) for dtype in DTYPES}
    answer: dict[str, Any] = json.loads(script("pieces.py", out, json.dumps(folders), *MESHES))
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_that_are_brought_in_pieces_are_whole(dtype: str, loaded: dict[str, Any]) -> None:
    assert set(loaded[dtype]) == set(MESHES)
    for mesh, tensors in loaded[dtype].items():
        assert not tensors["wrong"], mesh
        assert tensors["pieces"] > 3 * tensors["weights"], mesh
