"""The door of the gallery."""

import json
from pathlib import Path

import pytest

from compare.cli.teach import main
from compare.run import arms


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms.Arm, "missing", lambda self: f"{self.title} is not installed")


def test_pages_that_are_there_stay_where_nothing_can_be_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index.html").write_text("as it was")
    assert main(["--out", str(tmp_path), "--no-cache"]) == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ["as it was"]
    output = capsys.readouterr()
    assert f"no program could be compiled: no pages are written to {tmp_path}" in output.err
    assert "All four programs: not-installed: JAX is not installed" not in output.out
    assert "JAX (Shardy and GSPMD): not-installed: JAX is not installed" in output.out


def test_a_file_in_place_of_the_folder_is_refused_before_anything_is_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pages").touch()
    with pytest.raises(SystemExit) as end:
        main(["--out", str(tmp_path / "pages")])
    assert end.value.code == 2
    assert "pages is no folder; choose another with --out" in capsys.readouterr().err


def test_a_lesson_is_told_where_nothing_can_be_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mlp", "--no-cache"]) == 1
    output = capsys.readouterr().out
    assert "Two matmuls in a row" in output
    assert "payload T·D·2 = 512·1,024·2 = 1,048,576 B" in output


def test_json_has_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mlp", "--json", "--no-cache"]) == 1
    results = json.loads(capsys.readouterr().out)
    assert [result["program"] for result in results] == ["jax/shardy", "jax/gspmd", "torchxla/gspmd", "torchxla/shardy"]
    assert {result["status"] for result in results} == {"not-installed"}


def test_the_list_names_every_lesson(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "   matmul-one-side        Case 2: only one input has the contracting dim split" in capsys.readouterr().out
