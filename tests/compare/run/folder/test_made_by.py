"""What a run folder says of what made it."""

import subprocess
from pathlib import Path

from compare.run.folder.made_by import describe_maker, read_commit


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    return subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True).stdout


def test_a_checkout_has_a_commit_and_says_where_it_was_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("first")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()[:12]
    assert read_commit(tmp_path) == commit
    read_commit.cache_clear()
    (tmp_path / "file").write_text("changed")
    assert read_commit(tmp_path) == f"{commit}-dirty"


def test_what_is_no_checkout_has_none(tmp_path: Path) -> None:
    assert read_commit(tmp_path) is None
    (tmp_path / ".git").mkdir()
    read_commit.cache_clear()
    assert read_commit(tmp_path) is None
    assert describe_maker(tmp_path)["wirediff_commit"] is None
