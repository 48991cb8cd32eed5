"""The shapes that signatures name, checked while every form of the step is traced."""

from pathlib import Path

import pytest

from compare.run.arms import read_versions
from tests.kept import run_kept

pytestmark = pytest.mark.slow

pytest.importorskip("beartype", reason="beartype is not installed")

TRACE = """
from itertools import product
from jaxtyping import install_import_hook
with install_import_hook("jax_impl", "beartype.beartype"):
    from jax_impl.sharding.create import abstract_layout
    from jax_impl.sharding.lowering import jit_step
    from jax_impl.decoder.step import Step
from meshes.case import Case
from meshes.choices import CHOICES
MESHES = [("tp8", "tiny"), ("dp2pp2tp2", "tiny"), ("pp2cp2tp2", "tiny"), ("tp4pp2+sp", "tiny"), ("tp8+sp", "tiny"),
          ("cp2ep2tp2", "tiny-moe"), ("cp2ep4", "qwen1.5-moe-a2.7b"), ("ep4tp2+sp", "qwen3-30b-a3b")]
for (mesh, model), phase, attention, loop in product(MESHES, *(CHOICES[w] for w in ("phases", "attention", "loop"))):
    if loop == "unrolled" and not model.startswith("tiny"):
        continue
    case = Case.read(mesh, model_name=model, phases=(phase,), attention=attention, loop=loop)
    step = Step.of(abstract_layout(case))
    jit_step(step.layout, step.run, output_dims=step.output_dims).trace(*step.arguments)
"""


def test_every_array_has_the_shape_that_its_annotation_names(tmp_path: Path) -> None:
    """In a process of its own: the import hook must come before the twin's import."""
    given = {"JAX_PLATFORMS": "cpu", "CHECKED_BY": str(read_versions(("beartype", "jaxtyping")))}
    done = run_kept(tmp_path, "-c", TRACE, sources=("meshes", "jax_impl"), given=given)
    assert done.returncode == 0, done.stderr[-3000:]
