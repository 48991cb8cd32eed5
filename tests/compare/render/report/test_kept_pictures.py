"""Figures that were drawn before are taken only where the same would be drawn again."""

from pathlib import Path

import pytest

from compare.render.picture import Picture
from compare.render.report import kept_pictures
from compare.render.report.kept_pictures import KIND, keep_pictures
from compare.run.cache import VARIABLE

REQUEST = ("bytes", {"sentence": "a", "bytes": [1, 2.5]})


class Drawing:
    """Draws a picture that says how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> list[Picture]:
        self.times += 1
        return [
            Picture(name=f"../{number}", caption="traffic é", png=b"\x89PNG", svg=b"<svg/>")
            for number in range(self.times)
        ]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / KIND


def test_what_was_drawn_is_not_drawn_again() -> None:
    draw = Drawing()
    first = keep_pictures(REQUEST, draw)
    assert [picture.name for picture in first] == ["../0"]
    # Equal, of other objects.
    assert keep_pictures(("".join(["by", "tes"]), {"sentence": "a", "bytes": [1, 2.5]}), draw) == first
    assert draw.times == 1


def test_a_name_from_a_run_is_no_path(cache: Path) -> None:
    keep_pictures(REQUEST, Drawing())
    (entry,) = cache.iterdir()
    assert {path.name for path in entry.iterdir()} == {"0.png", "0.svg", "pictures.json", "manifest.json"}
    assert [path.name for path in cache.parent.iterdir() if path.name.endswith(("png", "svg"))] == []


@pytest.mark.parametrize("other", [("times", REQUEST[1]), ("bytes", {"sentence": "a", "bytes": [1, 2.25]})])
def test_another_number_or_figure_is_drawn(other: object) -> None:
    draw = Drawing()
    keep_pictures(REQUEST, draw)
    assert len(keep_pictures(other, draw)) == 2


@pytest.mark.parametrize(
    ("name", "other"),
    [("_sources", lambda: "another"), ("read_versions", lambda names: dict.fromkeys(names, "9.9"))],
)
def test_another_source_or_version_draws_anew(monkeypatch: pytest.MonkeyPatch, name: str, other: object) -> None:
    draw = Drawing()
    keep_pictures(REQUEST, draw)
    monkeypatch.setattr(kept_pictures, name, other)
    assert len(keep_pictures(REQUEST, draw)) == 2


def test_a_damaged_entry_is_drawn_anew(cache: Path) -> None:
    draw = Drawing()
    keep_pictures(REQUEST, draw)
    (entry,) = cache.iterdir()
    (entry / "0.svg").write_bytes(b"<svg></svg>")
    assert len(keep_pictures(REQUEST, draw)) == 2


def test_what_cannot_be_drawn_is_not_kept(cache: Path) -> None:
    def fail() -> list[Picture]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        keep_pictures(REQUEST, fail)
    assert not cache.exists()
    assert len(keep_pictures(REQUEST, Drawing())) == 1


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    draw = Drawing()
    assert [len(keep_pictures(REQUEST, draw)) for _ in range(2)] == [1, 2]
