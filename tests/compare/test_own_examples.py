"""docs/own_program.md: its examples run, each in a process of its own, as they stand there."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = dict(
    re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", (ROOT / "docs/own_program.md").read_text(), re.DOTALL)
)
SPELLINGS = """
from jax._src.interpreters import mlir
before = lowered.as_text(debug_info=True), mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
old = lowered.as_text("hlo"), lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
for spelled in (*before, *old):
    again = collectives(spelled, axes=AXES)
    assert not again.diff(table), again.diff(table)
try:
    collectives(lowered, axes={"x": 4}, topology="v5e:2x4")
except ValueError as error:
    print(error)
try:
    collectives(lowered, axes=AXES, topology="v5e:4x4")
except ValueError as error:
    print(error)
"""


@pytest.fixture
def run(tmp_path):
    """Run code, compiling what there is anew."""
    return partial(_run, env=os.environ | {"JAX_PLATFORMS": "cpu", "WIREDIFF_CACHE": str(tmp_path)})


def _run(code, *, env):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_there_is_an_example_of_each():
    assert list(EXAMPLES) == ["jax", "torchxla", "text"]


def test_the_example_of_text_runs(run):
    assert run(EXAMPLES["text"]) == ""


@pytest.mark.slow
def test_the_example_of_pytorch_runs(run):
    run(EXAMPLES["torchxla"])


@pytest.mark.slow
def test_the_example_of_jax_runs_and_every_spelling_of_it_is_the_same_program(run):
    printed = run(EXAMPLES["jax"] + SPELLINGS).splitlines()
    # The sum of [32, 512] bf16 over four: one and a half of 32,768 bytes.
    total = "1 collective moves 49,152 B a step, mean over devices. Compiled for v5e:2x4 by libtpu "
    assert [line for line in printed if line.startswith(total)]
    assert printed[-2:] == [
        "this Lowered: the axes make 4 devices; the program is for 8",
        "this Lowered: v5e:4x4 has 16 devices; the program is for 8",
    ]
