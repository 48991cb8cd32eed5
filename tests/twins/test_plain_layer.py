"""The layer that users would write, beside each twin: on one mesh it has the collectives of the twin's layer."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from compare import run
from tests.places import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, ("jax", "libtpu", "torch_xla"))), reason="JAX, libtpu or torch_xla is not installed"
    ),
]

SUMS = [["all-reduce", "tp", 131_072, 1]] * 2
"""After o_proj and down_proj: 4 sequences of a dp group · 128 tokens · 128 wide · 2 bytes."""
ATTENTION = [
    # PyTorch's attention call makes one dim of batch and heads, the heads are gathered: 8 KV heads of 16 as they are,
    # 4 · 128 · 8 · 16 · 2 bytes, and twice as much of what has 16 heads.
    ["all-gather", "tp", 131_072, 1],
    ["all-gather", "tp", 262_144, 1],
    ["all-gather", "tp", 262_144, 1],
]
EXPECTED = {"jax": SUMS, "torchxla": [*ATTENTION, *SUMS]}


@pytest.mark.parametrize("arm", EXPECTED)
def test_a_plain_layer_has_the_collectives_of_the_twins_layer(arm: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("plain_layers.py"), arm],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    plain = json.loads(done.stdout.splitlines()[-1])
    assert plain == EXPECTED[arm]
    twin = run(
        "dp2tp4@v5e:2x4", model="tiny", phases=("prefill",), arms=arm, controls="none", batch=8, seq=128, out=tmp_path
    ).table("collectives")
    layers = twin[twin["scope"].str.startswith("layer.") & twin["cell"].eq("tpu")]
    assert (layers["executions"] == 4).all()
    rows = layers[["kind", "axes", "payload_bytes"]].values.tolist()
    assert sorted([*row, 1] for row in rows) == plain
