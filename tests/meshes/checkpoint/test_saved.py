"""What the installed transformers saves and holds in memory: both are the same weights."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from meshes.checkpoint import Checkpoint, from_huggingface
from meshes.weights import weights
from tests.meshes.checkpoint.hub import CONFIGS, case_on

SCRIPT = Path(__file__).with_name("saved.py")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("transformers") is None or find_spec("torch") is None:
        pytest.skip("transformers is not installed")
    out = tmp_path_factory.mktemp("saved")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(out)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("family", CONFIGS)
def test_a_saved_model_and_its_state_dict_are_the_same_weights(family: str, saved: Path) -> None:
    checkpoint = Checkpoint.open(saved / family)
    assert checkpoint.model.num_parameters == sum(part.size for part in distinct(saved, family).values())
    case = case_on("tp4", checkpoint.model, dtype="f32")
    with np.load(saved / f"{family}.npz") as state:
        held = from_huggingface(state, case=case)
    for spec in weights(case):
        values = checkpoint.read(spec, (slice(None),) * len(spec.shape), case)
        assert np.array_equal(values, held[spec.name]), spec.name


def distinct(saved: Path, family: str) -> dict[str, np.ndarray]:
    """The state dict; of a tied model without the head."""
    with np.load(saved / f"{family}.npz") as state:
        tied = family == "llama"
        return {name: state[name] for name in state if not (tied and name == "lm_head.weight")}
