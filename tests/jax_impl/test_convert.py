"""Which errors of a restore are the folder's, and which are ours."""

import sys
from pathlib import Path

import pytest

from jax_impl.convert import _restoring
from meshes.process.errors import MeshError


@pytest.mark.parametrize("error", [Exception("no chunk"), ValueError("no chunk"), OSError("no chunk"), KeyError("no")])
def test_what_orbax_says_of_a_damaged_folder_is_one_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # put back afterwards
    message = r"^cannot restore there: .*no.*; convert the checkpoint again$"
    with pytest.raises(MeshError, match=message), _restoring(Path("there")):
        raise error


@pytest.mark.parametrize("error", [AttributeError, TypeError, RuntimeError, AssertionError])
def test_no_other_error_is_taken_for_damage(error: type[Exception]) -> None:
    with pytest.raises(error), _restoring(Path("there")):
        raise error("of another kind")
