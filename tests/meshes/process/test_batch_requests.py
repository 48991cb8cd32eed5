"""Many small programs of one process: how it is asked, and what one's failure costs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from meshes.process import batch_requests
from meshes.process.batch_requests import serve, write

ASKED = [
    {"pattern": "good", "axes": {"dp": 2, "tp": 4}},
    {"pattern": "bad", "axes": {"tp": 4}},
    {"pattern": "good", "axes": {"tp": 4}},
]


@pytest.fixture(autouse=True)
def no_chapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_requests, "CHAPTERS", ())


def lower(program: Mapping[str, Any], out: Path) -> None:
    if program["pattern"] == "bad":
        raise KeyError("no such\n   thing")
    write(out, program=b"program", about=dict(program))


def write_request(folder: Path, programs: object) -> list[str]:
    (folder / "request.json").write_text(json.dumps({"programs": programs}))
    return [str(folder / "request.json"), str(folder / "out")]


def test_one_that_fails_costs_only_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun: list[int] = []
    argv = write_request(tmp_path, ASKED)
    assert serve(lower, argv, package="meshes", framework="This", begin=begun.append) == 0
    assert begun == [8]
    out = tmp_path / "out"
    assert json.loads((out / "0/about.json").read_text()) == ASKED[0]
    assert (out / "2/program.mlirbc").read_bytes() == b"program"
    assert (out / "1/failed.txt").read_text() == "KeyError: 'no such\\n thing'\n"
    assert not (out / "1/about.json").exists()
    stages = [json.loads(line)["stage"] for line in capsys.readouterr().out.splitlines()]
    assert stages == ["good", "bad", "good"]


@pytest.mark.parametrize("programs", [None, [{}], [{"axes": {"tp": 4}}], [{"pattern": "good", "axes": 4}], 7])
def test_a_request_that_cannot_be_read_is_told_in_one_line(
    programs: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(lower, write_request(tmp_path, programs), package="meshes", framework="This") == 2
    assert capsys.readouterr().err.startswith(f"cannot read the request {tmp_path}")
    assert not (tmp_path / "out").exists()


def test_a_framework_that_cannot_be_imported_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_requests, "CHAPTERS", ("nowhere",))
    assert serve(lower, write_request(tmp_path, ASKED), package="meshes", framework="This") == 2
    assert capsys.readouterr().err == "This can't be imported: No module named 'meshes.nowhere'\n"


def test_too_few_arguments_say_how_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(lower, ["one"], package="meshes.here", framework="This") == 2
    assert capsys.readouterr().err == "usage: python -m meshes.here REQUEST.json OUTDIR\n"
