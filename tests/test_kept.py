"""What the tests keep is used again only where a process would write the same: nothing stale, damaged or failed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from compare.run.cache import VARIABLE
from tests import kept
from tests.kept import KIND, describe, fill
from tests.places import ROOT


class Maker:
    """Writes a result that says how often it was asked."""

    def __init__(self, *, fails: bool = False):
        self.times, self.fails = 0, fails

    def __call__(self, folders: Sequence[Path]) -> None:
        self.times += 1
        for folder in folders:
            (folder / ("failed.txt" if self.fails else "result.txt")).write_text(str(self.times))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / KIND


def ask(out: Path, make: Maker, *, case: str = "tp8", source: str = "meshes/dims.py", **words: object) -> str:
    """What is in the folder of this case in the end."""
    out.mkdir()
    (out / "case.json").write_text(case)
    describe(out, source, **words)
    fill([out], make, results=("result.txt",))
    return (out / "result.txt").read_text() if (out / "result.txt").exists() else ""


def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    make = Maker()
    assert [ask(tmp_path / name, make) for name in "abc"] == ["1", "1", "1"]
    assert make.times == 1


def test_only_what_is_missing_is_made(tmp_path: Path) -> None:
    make = Maker()
    ask(tmp_path / "a", make)
    folders = [tmp_path / name for name in "bc"]
    for folder, case in zip(folders, ("tp8", "tp4"), strict=True):
        folder.mkdir()
        (folder / "case.json").write_text(case)
        describe(folder, "meshes/dims.py")
    fill(folders, make, results=("result.txt",))
    assert [(folder / "result.txt").read_text() for folder in folders] == ["1", "2"]


def test_another_input_or_flag_is_made(tmp_path: Path) -> None:
    make = Maker()
    for number, words in enumerate(({}, {"case": "tp4"}, {"flag": 1}, {"flag": 2})):
        assert ask(tmp_path / str(number), make, **words) == str(number + 1)


def test_a_changed_source_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, source = Maker(), tmp_path / "meshes" / "dims.py"
    source.parent.mkdir()
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    for name, text, answer in (("a", "one = 1", "1"), ("b", "one = 2", "2"), ("c", "one = 1", "1")):
        source.write_text(text)
        assert ask(tmp_path / name, make, source="meshes") == answer


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("read_versions", lambda names: dict.fromkeys(names, "9.9")),
        ("sources_digest", lambda *paths: "another"),
    ],
)
def test_another_version_or_digest_is_made_anew(tmp_path: Path, monkeypatch, name: str, other: object) -> None:
    make = Maker()
    ask(tmp_path / "a", make)
    monkeypatch.setattr(kept, name, other)
    assert ask(tmp_path / "b", make) == "2"


def test_a_variable_that_changes_programs_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()
    ask(tmp_path / "a", make)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert ask(tmp_path / "b", make) == "2"


def test_where_a_library_of_the_tests_found_libtpu_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """libtpu says so in the environment of whichever process imports it, and each virtual environment has its own."""
    make = Maker()
    for number, place in enumerate(("one", "another")):
        monkeypatch.setenv("TPU_LIBRARY_PATH", f"{place}/libtpu.so")
        assert ask(tmp_path / str(number), make) == "1"


def test_what_failed_is_asked_again(tmp_path: Path) -> None:
    assert ask(tmp_path / "a", Maker(fails=True)) == ""
    assert ask(tmp_path / "b", Maker()) == "1"


def test_a_damaged_entry_is_made_anew(tmp_path: Path, cache: Path) -> None:
    make = Maker()
    ask(tmp_path / "a", make)
    (entry,) = cache.iterdir()
    (entry / "result.txt").write_text("another")
    assert ask(tmp_path / "b", make) == "2"


def test_a_folder_that_does_not_say_what_fills_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="does not say"):
        fill([tmp_path], Maker(), results=("result.txt",))


def test_the_sources_that_tests_name_are_there() -> None:
    named = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "from tests.kept" in text and file.name != "test_kept.py":
            named += [word for call in text.split("describe(")[1:] for word in call.partition(")")[0].split('"')[1::2]]
    assert len(named) > 20
    assert [word for word in named if not (ROOT / word).exists()] == []
