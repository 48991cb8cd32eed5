"""The gallery's patterns compute the same in both frameworks, split over 4 or 8 devices: a fair comparison."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.gallery.lessons import LESSONS
from tests.kept import describe, fill
from tests.xla_flags import quick_environment

ROOT = Path(__file__).parents[2]
ARMS = ("jax_impl", "torchxla_impl")
SAME = (
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
)
"""Lessons that compute the same in two ways."""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The lessons that each arm computed, and where results differ; kept, and not the gigabytes of numbers."""
    folder = tmp_path_factory.mktemp("patterns")
    describe(
        folder,
        "meshes",
        *ARMS,
        "compare/gallery",
        "tests/twins/patterns.py",
        "tests/twins/test_patterns.py",
        "tests/xla_flags.py",
    )
    fill([folder], compute, results=("compared.json",))
    return json.loads((folder / "compared.json").read_text())


def compute(folders: Sequence[Path]) -> None:
    (folder,) = folders
    results: dict[str, dict[str, Any]] = {arm: {} for arm in ARMS}
    for arm, devices in product(ARMS, sorted({lesson.num_devices for lesson in LESSONS})):
        values = folder / f"{arm}-{devices}.npz"
        subprocess.run(
            [sys.executable, "-m", "tests.twins.patterns", arm, str(values), str(devices)],
            cwd=ROOT,
            check=True,
            capture_output=True,
            timeout=600,
            env=quick_environment() | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices)},
        )
        with np.load(values) as computed:
            results[arm].update(computed)
        values.unlink()
    jax, torch = results["jax_impl"], results["torchxla_impl"]
    compared = {
        "computed": {arm: sorted(by_lesson) for arm, by_lesson in results.items()},
        "frameworks": {name: difference(torch, name, jax, name) for name in torch},
        "ways": {f"{first}, {other}": difference(jax, first, jax, other) for first, other in SAME},
    }
    (folder / "compared.json").write_text(json.dumps(compared))


def difference(ours: Mapping[str, Any], name: str, theirs: Mapping[str, Any], other: str) -> str:
    """What numpy says of two results that are not equal; or an empty word."""
    left, right = ours[name], theirs[other]
    if left.shape != right.shape:
        return f"{left.shape} is not {right.shape}"
    try:
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
    except AssertionError as apart:
        return str(apart)
    return ""


def test_numbers_that_differ_are_told() -> None:
    ones = {"a": np.ones((2, 3), np.float32), "b": np.ones((3, 2), np.float32)}
    apart = {"a": np.array([[1, 1, 1], [1, 1, 1.001]], np.float32)}
    assert not difference(ones, "a", ones, "a")
    assert difference(ones, "a", ones, "b") == "(2, 3) is not (3, 2)"
    assert "Mismatched elements: 1 / 6" in difference(apart, "a", ones, "a")


@pytest.mark.slow
def test_both_frameworks_compute_the_same(compared: dict[str, Any]) -> None:
    jax, torch = (set(compared["computed"][arm]) for arm in ARMS)
    assert jax == {lesson.name for lesson in LESSONS}
    assert jax - torch == {lesson.name for lesson in LESSONS if lesson.absent}
    assert compared["frameworks"] == dict.fromkeys(torch, "")


@pytest.mark.slow
def test_other_ways_to_the_same_give_the_same(compared: dict[str, Any]) -> None:
    assert compared["ways"] == {f"{first}, {other}": "" for first, other in SAME}
