"""A program that was saved is read again by every door, as it was."""

import gzip
import json
from dataclasses import replace

import pytest

from compare import collectives
from compare.cli.diff import main as diff
from compare.cli.history import main as history
from compare.cli.hlo import main as hlo
from compare.history.lineage_query import query_saved
from compare.hlo.text.metadata import SourceNames
from compare.run.errors import WorkError
from compare.user_program.saved_program import SavedProgram, read_saved, save
from tests.compare.test_history import RECORDED
from tests.compare.verdict.toy_hlo import AXES, GATHER, SUM, program

TEXT = program(SUM, GATHER)


@pytest.fixture
def saved(tmp_path):
    collectives(TEXT, axes=AXES).save(tmp_path / "before")
    return tmp_path / "before"


def test_what_was_saved_is_what_is_read(tmp_path, capsys):
    program = SavedProgram(
        text=TEXT, axes=AXES, compiled="compiled for v5e:2x4", device_ids=(3, 1, 2), notes=("ä",), passes=b"packed"
    )
    save(tmp_path / "one", program)
    assert read_saved(tmp_path / "one") == program
    assert hlo([str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "2 collectives move 1,179,648 B a step, mean over devices. Compiled for v5e:2x4.",
        "Note: ä.",
    ]
    assert read_saved(tmp_path / "one").passes == b"packed"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_every_row_leads_to_its_line(saved):
    table = collectives(saved)
    assert table.text == TEXT
    for row in table:
        assert table.text.splitlines()[row.line - 1].strip() == row.text
        assert row.name in row.text


def test_it_is_read_with_the_axes_it_was_saved_with(saved, capsys):
    assert collectives(saved).axes == collectives(str(saved)).axes == AXES
    assert hlo([str(saved), "--json"]) == 0
    captured = capsys.readouterr()
    assert [row["axes"] for row in json.loads(captured.out)] == ["tensor", "tensor"]
    assert captured.err == ""
    with pytest.raises(ValueError, match="its own mesh is data=2,tensor=4"):
        hlo([str(saved), "--axes", "tensor=4,data=2"])


def test_it_is_held_against_another_or_a_file(saved, tmp_path, capsys):
    collectives(program(SUM), axes=AXES).save(tmp_path / "after")
    assert diff([str(saved), str(saved)]) == 0
    assert diff([str(saved), str(tmp_path / "after")]) == 1
    assert "−393 kB" in capsys.readouterr().out
    (tmp_path / "file.hlo").write_text(TEXT)
    assert diff([str(tmp_path / "file.hlo"), str(saved), "--axes", "data=2,tensor=4"]) == 0
    collectives(TEXT, axes={"a": 2, "b": 4}).save(tmp_path / "other")
    with pytest.raises(WorkError, match=r"the axes data=2,tensor=4, .* has a=2,b=4; pass the axes of both with --axes"):
        diff([str(saved), str(tmp_path / "other")])
    assert diff([str(saved), str(tmp_path / "other"), "--axes", "x=2,y=4"]) == 0


def test_its_history_is_told_where_its_compile_recorded_it(saved, tmp_path, capsys):
    recorded = SavedProgram(
        text=gzip.decompress((RECORDED / "optimized.hlo.gz").read_bytes()).decode(),
        axes={"cp": 4, "tp": 2},
        passes=(RECORDED / "passes.tar.xz").read_bytes(),
    )
    save(tmp_path / "ring", recorded)
    assert history([str(tmp_path / "ring")]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == str(tmp_path / "ring")
    name = next(line for line in lines if "collective-permute" in line).split()[0]
    assert history([str(tmp_path / "ring"), "--name", name]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(f"{name} of {tmp_path / 'ring'}: collective-permute over cp")
    assert {row.row.scope for row in query_saved(tmp_path / "ring")} > {"layer.mlp.down"}
    save(tmp_path / "mapped", replace(recorded, names=SourceNames.of({".": "block"})))
    assert {row.row.scope for row in query_saved(tmp_path / "mapped")} == {"block"}
    with pytest.raises(WorkError, match="no collective is named 'nothing'"):
        history([str(tmp_path / "ring"), "--name", "nothing"])
    with pytest.raises(WorkError, match="not recorded: it was compiled elsewhere"):
        history([str(saved)])


def test_it_takes_the_place_of_one_before_and_of_nothing_else(saved, tmp_path):
    collectives(program(SUM), axes=AXES).save(saved)
    assert len(collectives(saved)) == 1
    (tmp_path / "empty").mkdir()
    collectives(program(SUM), axes=AXES).save(str(tmp_path / "empty"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file"):
        with pytest.raises(WorkError, match=f"{name} is there, and no program that was saved"):
            collectives(TEXT, axes=AXES).save(tmp_path / name)
    assert (tmp_path / "mine/notes.txt").read_text() == "mine"
    with pytest.raises(WorkError, match="cannot write"):
        collectives(TEXT, axes=AXES).save(tmp_path / "file/inside")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before", "empty", "file", "mine"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("program.json", b"{"),
        ("program.json", b"[" * 100_000),
        ("program.json", b"[]"),
        ("program.json", b'{"axes": {"data": "2"}}'),
        ("program.json", b'{"axes": {"data": 2}, "device_ids": ["a"]}'),
        ("program.json", b'{"axes": {"data": 2}, "notes": 3}'),
        ("optimized.hlo.gz", b"\x1f\x8bnothing"),
        ("optimized.hlo.gz", b"\x00\x01\xff"),
        ("optimized.hlo.gz", None),
    ],
)
def test_a_damaged_one_is_refused_in_one_line(saved, name, content):
    (saved / name).unlink()
    if content is not None:
        (saved / name).write_bytes(content)
    with pytest.raises(WorkError) as caught:
        collectives(saved)
    assert str(saved) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
