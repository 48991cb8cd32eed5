"""What transformers answers, made once for all tests of the twins."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from filelock import FileLock

from compare.run.cache import file_digest
from tests.kept import describe, fill
from tests.places import ROOT
from tests.twins.cases import run


def make_reference(folders: Sequence[Path]) -> None:
    run(sys.executable, str(Path(__file__).with_name("reference.py")), *map(str, folders))


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each family: `reference.py` says what is in it."""
    if find_spec("transformers") is None or find_spec("torch") is None:
        pytest.skip("transformers is not installed")
    base = tmp_path_factory.getbasetemp()
    # The workers of one run share it.
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "reference"
    with FileLock(f"{out}.lock"):
        if not (out / "done").exists():
            out.mkdir(exist_ok=True)
            describe(out, "tests/twins/reference.py", "meshes", text=file_digest(ROOT / "LICENSE"))
            fill([out], make_reference, results=("*/**/*",))
            (out / "done").touch()
    return out
