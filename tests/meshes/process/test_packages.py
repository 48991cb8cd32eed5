"""A package that another one was installed over is told by its own record."""

import base64
import hashlib
from pathlib import Path

import pytest

from meshes.process.packages import is_overwritten


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module of a package `thing` as a wheel is unpacked, with its record."""
    module, info = tmp_path / "thing.py", tmp_path / "thing-1.dist-info"
    module.write_text("answer = 42\n")
    info.mkdir()
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"answer = 42\n").digest()).rstrip(b"=").decode()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1\n")
    (info / "RECORD").write_text(
        f"thing.py,sha256={digest},12\nthing-1.dist-info/METADATA,,\nthing-1.dist-info/RECORD,,\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return module


def test_its_own_files_are_told_from_those_of_another(installed: Path) -> None:
    assert not is_overwritten("thing")
    installed.write_text("answer = 41\n")
    assert is_overwritten("thing")


def test_what_is_not_installed_is_not_overwritten() -> None:
    assert not is_overwritten("no-such-thing-at-all")
