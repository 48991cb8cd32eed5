"""The gallery's patterns compute the same in both frameworks, split over 4 or 8 devices: a fair comparison."""

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.gallery.lessons import LESSONS
from tests.kept import describe, fill
from tests.xla_flags import quick_environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each arm computes, by lesson."""
    folder = tmp_path_factory.mktemp("patterns")
    results: dict[str, Any] = {}
    for arm, devices in product(("jax_impl", "torchxla_impl"), sorted({lesson.num_devices for lesson in LESSONS})):
        out = folder / f"{arm}-{devices}"
        out.mkdir()
        describe(
            out,
            "meshes",
            arm,
            "compare/gallery",
            "tests/twins/patterns.py",
            "tests/xla_flags.py",
            arm=arm,
            devices=devices,
        )
        fill([out], partial(compute, arm, devices), results=("values.npz",))
        results.setdefault(arm, {}).update(np.load(out / "values.npz"))
    return results


def compute(arm: str, devices: int, folders: Sequence[Path]) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.twins.patterns", arm, str(folders[0] / "values.npz"), str(devices)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=600,
        env=quick_environment() | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices)},
    )


@pytest.mark.slow
def test_both_frameworks_compute_the_same(results: dict[str, Any]) -> None:
    jax, torch = results["jax_impl"], results["torchxla_impl"]
    assert set(jax) == {lesson.name for lesson in LESSONS}
    assert set(jax) - set(torch) == {lesson.name for lesson in LESSONS if lesson.absent}
    for name, computed in torch.items():
        assert computed.shape == jax[name].shape, name
        np.testing.assert_allclose(computed, jax[name], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_other_ways_to_the_same_give_the_same(results: dict[str, Any]) -> None:
    jax = results["jax_impl"]
    for first, other in (
        ("context-ring", "context-gather"),
        ("last-token", "last-token-masked"),
        ("mlp", "mlp-sequence"),
        ("cache-write-heads", "cache-write-positions"),
        ("layers-split", "layers-inside"),
        ("transpose-free", "transpose-moved"),
        ("layer-dp-tp", "layer-sequence"),
        ("matmul-both-agree", "matmul-both-axes"),
        ("sequence-unpinned", "mlp"),
        ("sequence-weights", "mlp"),
    ):
        np.testing.assert_allclose(jax[first], jax[other], rtol=1e-4, atol=1e-5, err_msg=first)
