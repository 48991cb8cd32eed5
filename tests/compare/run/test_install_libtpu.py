"""Another libtpu beside the one installed: pip gets it, here from a wheel made by hand, and the compile takes it."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from compare.run.arms import Cell
from compare.run.errors import WorkError
from compare.run.install_libtpu import install, read_version
from compare.run.tasks import Task, next_task
from meshes.case import Case

pytest.importorskip("pip")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where pip finds libtpu 0.0.7, which asks for a package that is nowhere, and nothing else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "libtpu-0.0.7.dist-info"
    with zipfile.ZipFile(folder / "libtpu-0.0.7-py3-none-any.whl", "w") as wheel:
        wheel.writestr("libtpu/__init__.py", "ME = 'libtpu 0.0.7'\n")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: libtpu\nVersion: 0.0.7\nRequires-Dist: nowhere\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_the_compile_takes_the_one_that_was_asked_for(wheels, tmp_path):
    install("0.0.7", tmp_path / "there")
    step = Task(name="compile", kind="compiled", key="k", module="m", request="", results=(), libtpu=tmp_path / "there")
    look = "import libtpu, importlib.metadata as m; print(libtpu.ME, m.version('libtpu'))"
    command = [sys.executable, "-P", "-c", look]
    assert subprocess.check_output(command, env=step.environment(), text=True).strip() == "libtpu 0.0.7 0.0.7"


def test_one_that_cannot_be_had_is_refused_in_one_line(wheels, tmp_path):
    with pytest.raises(
        WorkError, match=r"^libtpu 9\.9 cannot be had: No matching distribution found for libtpu==9\.9$"
    ):
        install("9.9", tmp_path / "there")


@pytest.mark.parametrize("words", ["", "latest", "0.0.41 --index-url x", "1", "0.0.41.post1"])
def test_what_is_no_version_is_refused(words):
    with pytest.raises(WorkError, match="is no version of libtpu; write one like 0"):
        read_version(words)


def test_a_program_of_another_libtpu_is_another_entry(toy, tmp_path):
    """The same program and case; what compiles it is part of the key, and of the environment."""
    program = tmp_path / "program"
    program.mkdir()
    (program / "program.mlirbc").write_text("")
    (program / "about.json").write_text(json.dumps({"compile_options": {}}))
    case = Case.read("tp8", model_name="tiny", phases=("decode",))
    other = Cell("tpu+libtpu-0.0.7", steps=("lower", "install", "compile"), control="libtpu", libtpu="0.0.7")
    next_step = next_task(other, case=case, arm=toy, folders={"lower": program, "install": tmp_path})
    here = next_task(Cell("tpu"), case=case, arm=toy, folders={"lower": program})
    assert (here.module, next_step.module) == ("compare.compile.workers.compile_request",) * 2
    assert here.key != next_step.key
    assert (here.libtpu, next_step.libtpu) == (None, tmp_path)
