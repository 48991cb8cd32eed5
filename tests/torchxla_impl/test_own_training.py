"""Autograd in one's own PyTorch/XLA program: off unless it is asked for."""

import pytest

from compare import collectives
from tests.torchxla_impl.workers import script


@pytest.mark.slow
def test_off_unless_asked_for_and_a_training_step_sums_its_gradients(tmp_path):
    """Forward: partial sums of [64/2, 512] in float32 over tensor.  Backward: a quarter of each weight's gradient, and
    the loss, over data, in one all-reduce."""
    assert script("own_training.py", tmp_path, tmp_path / "step").split() == ["False", "True"]
    table = collectives((tmp_path / "step").read_bytes(), axes={"data": 2, "tensor": 4}, topology="v5e:2x4")
    assert sorted((row.kind, row.axes, row.payload_bytes) for row in table) == [
        ("all-reduce", "data", 2 * 2048 // 4 * 512 * 4 + 4),
        ("all-reduce", "tensor", 64 // 2 * 512 * 4),
    ]
