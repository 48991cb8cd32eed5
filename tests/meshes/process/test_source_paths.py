"""What is left of a file name, wherever the checkout and the environment lie."""

import re
from pathlib import Path

import pytest

from meshes.process.source_paths import machine_part

ROOT = Path("/w/check.out")


@pytest.mark.parametrize(
    ("file", "left"),
    [
        ("/w/check.out/jax_impl/decoder/layers.py", "jax_impl/decoder/layers.py"),
        ("/w/check.out/docs/surprises/fsdp.py", "docs/surprises/fsdp.py"),
        # An environment inside of the checkout, beside it, and Debian's.
        ("/w/check.out/.venv/lib/python3.11/site-packages/torch/functional.py", "site-packages/torch/functional.py"),
        ("/env/lib/python3.12/site-packages/flax/nnx/module.py", "site-packages/flax/nnx/module.py"),
        ("/py/lib/python3/dist-packages/numpy/core.py", "dist-packages/numpy/core.py"),
        ("/w/check.out/.venv/lib/python3.11/contextlib.py", "lib/python3.11/contextlib.py"),
        ("/py/lib/python3.11/contextlib.py", "lib/python3.11/contextlib.py"),
        # A framework's own checkout, which is installed in place.
        ("/src/jax/jax/_src/core.py", "jax/_src/core.py"),
        # Another's, and what only looks like ours.
        ("/mine/model.py", "/mine/model.py"),
        ("/w/check/out/jax_impl/decoder/layers.py", "/w/check/out/jax_impl/decoder/layers.py"),
        ("<frozen runpy>", "<frozen runpy>"),
    ],
)
def test_installed_files_keep_the_folder_that_says_so(file: str, left: str) -> None:
    assert re.sub(machine_part("/src/jax/jax/__init__.py", root=ROOT), "", file) == left


def test_our_rooms_are_ours_where_they_are_installed_too() -> None:
    root = Path("/env/lib/python3.11/site-packages")
    part = machine_part(str(root / "torch/__init__.py"), root=root)
    assert re.sub(part, "", f"{root}/torchxla_impl/decoder/layers.py") == "torchxla_impl/decoder/layers.py"
    assert re.sub(part, "", f"{root}/torch/functional.py") == "site-packages/torch/functional.py"
