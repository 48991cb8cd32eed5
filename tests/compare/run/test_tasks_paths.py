"""What a worker said reads the same on every machine."""

import sysconfig

from compare.run.arms import ARMS
from compare.run.tasks import ROOT, strip_prefixes


def test_an_installed_file_keeps_the_folder_that_says_so(monkeypatch):
    """Also in an environment inside of the checkout: what is left must not look like the user's own file."""
    inside = f"{ROOT}/.venv/lib/python3.11"
    paths = {
        "purelib": f"{inside}/site-packages",
        "platlib": f"{inside}/site-packages",
        "stdlib": "/py/lib/python3.11",
    }
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    norm = f"{ROOT}/jax_impl/decoder/norm.py"
    shortened = f'"{inside}/site-packages/torch/functional.py" "/py/lib/python3.11/contextlib.py" "{norm}"'
    assert strip_prefixes(shortened, ARMS["jax"]) == (
        '"site-packages/torch/functional.py" "lib/python3.11/contextlib.py" "jax_impl/decoder/norm.py"'
    )
