"""Somebody's programs, compiled: once each, shown meanwhile, and kept without the program itself."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from compare import collectives
from compare.cli.diff import main
from compare.hlo.text.errors import HloError
from compare.run.errors import WorkError
from compare.run.progress import show_compiles
from compare.user_program import compile_program
from tests.compare.verdict.toy_hlo import AXES, program

COUNTS = {"all-reduce@tensor": 1, "all-gather@tensor": 1}
BEFORE = "module @one {\n}\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and a compiler that takes no time."""
    monkeypatch.setenv("WIREDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_program, "MODULE", "tests.compare.run.pretend_compiler")
    return tmp_path / "cache"


def test_a_program_is_compiled_once_and_the_second_time_silently(cache, capsys):
    first = collectives(BEFORE, axes=AXES)
    assert first.counts() == COUNTS
    assert capsys.readouterr().err == "compiling this text …\n"
    again = collectives(BEFORE.encode(), axes=AXES)
    assert capsys.readouterr().err == ""
    assert (again.rows, again.compiled) == (first.rows, "compiled for v5e:2x4 by libtpu 0")


def test_another_program_another_topology_another_version_is_another_entry(cache, capsys, monkeypatch):
    collectives(BEFORE, axes=AXES)
    collectives(BEFORE, axes=AXES, topology="v6e:2x4")
    collectives(BEFORE.replace("one", "two"), axes=AXES)
    monkeypatch.setattr(compile_program, "read_versions", lambda packages: {"libtpu": "1"})
    collectives(BEFORE, axes=AXES)
    assert capsys.readouterr().err.count("compiling") == 4


def test_what_is_kept_are_the_results_alone(cache):
    collectives(BEFORE, axes=AXES)
    (entry,) = (cache / compile_program.KIND).iterdir()
    assert sorted(os.listdir(entry)) == [
        "before.hlo.gz",
        "compiled.json",
        "manifest.json",
        "optimized.hlo.gz",
        "passes.tar.xz",
    ]
    assert os.listdir(cache / "begun") == []


def test_a_mesh_that_only_the_compiler_can_read_is_used_and_held_against_the_axes(cache):
    """Of bytecode, say: what is compiled says which mesh it names."""
    table = collectives("module @meshed {\n}\n")
    assert table.axes == AXES
    assert table.saved.passes == b"recorded"
    assert table.counts() == collectives("module @meshed {\n}\n", axes=AXES).counts()
    with pytest.raises(HloError, match="the axes are tensor=4,data=2, and its own mesh is data=2,tensor=4"):
        collectives("module @meshed {\n}\n", axes={"tensor": 4, "data": 2})
    assert collectives("module @other {\n}\n").axes == {}


def test_what_fails_is_one_line_and_is_not_kept(cache):
    with pytest.raises(WorkError, match=r"^this text: the compiler says no$"):
        collectives("module @fails {\n}\n", axes=AXES)
    assert not (cache / compile_program.KIND).exists()
    assert os.listdir(cache / "begun") == []


def test_a_diff_compiles_what_is_not_and_the_same_twice_once(cache, tmp_path, capsys):
    paths = [tmp_path / name for name in ("a.mlir", "b.mlir", "c.hlo")]
    for path, text in zip(paths, (BEFORE, BEFORE, program()), strict=True):
        path.write_text(text)
    a, b, c = map(str, paths)
    axes = ("--axes", "data=2,tensor=4")
    assert main([a, a, *axes]) == 0
    assert main([a, b, *axes]) == 0
    assert main([a, c, *axes]) == 1
    printed = capsys.readouterr()
    assert printed.err == f"compiling {a} …\n"
    assert "(compiled for v5e:2x4 by libtpu 0)" in printed.out
    assert main([a, c, *axes, "--no-cache"]) == 1
    assert "compiling" in capsys.readouterr().err


def test_on_a_terminal_every_program_has_a_line_with_its_seconds():
    console = Console(file=io.StringIO(), force_terminal=True, width=100, _environ={})
    with show_compiles(console) as notify:
        notify("a.mlir", "", 0.0)
        notify("b.mlir", "compile", 1.25)
    text = console.file.getvalue()
    assert "compiling a.mlir: start, 0.0 s" in text
    assert "compiling b.mlir: compile, 1.2 s" in text
