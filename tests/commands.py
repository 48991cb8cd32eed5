"""A command in the process of the tests: to start one costs a second, before it does anything."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

import pytest

from meshes.process.command_line import run_command
from tests.places import ROOT


def run_here(
    name: str, *words: object, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """The status of `python -m compare.NAME words…`, and what it prints; `environment` is added to this process's.

    A process of its own adds `sys.exit`, which one test of each command shows.
    """
    module = f"compare.{name}"
    if find_spec(module).submodule_search_locations is not None:
        module += ".__main__"
    main = import_module(module).main
    argv = [str(word) for word in words]
    out, error = StringIO(), StringIO()
    changed = patch.dict(os.environ, {"COLUMNS": "100", **(environment or {})})
    with chdir(cwd), changed, redirect_stdout(out), redirect_stderr(error), pytest.raises(SystemExit) as end:
        run_command(main, argv)
    assert isinstance(end.value.code, int), end.value.code
    return CompletedProcess([module, *argv], end.value.code, out.getvalue(), error.getvalue())


def run_process(
    *words: object, cwd: Path = ROOT, environment: Mapping[str, str] | None = None, check: bool = False
) -> CompletedProcess[str]:
    """`python words…` in a process of its own, and what it prints; `environment` is added to this process's."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=check,
        timeout=1500,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100", **(environment or {})},
    )


def check_refusal(done: CompletedProcess[str], said: str) -> None:
    """Nothing is printed but one line that says why, and the status is 2."""
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert said in done.stderr
