"""A worker that dies takes one law with it, and says why."""

from pathlib import Path

import pytest

from tests.laws.programs import DeadError, count_collectives
from tests.laws.workers import FAILED, run

WORKER = """
import os, sys
from tests.laws.workers import each

def job(folder):
    if folder.name == "bad":
        print("Check failed: it is bad", file=sys.stderr, flush=True)
        os.abort()
    if folder.name == "wrong":
        raise ValueError("this one is wrong")
    (folder / "done").touch()

each(sys.argv[1:], job)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A worker of its own, which a process finds beside the project."""
    (tmp_path / "a_worker.py").write_text(WORKER)
    from tests.laws import workers

    path = workers.ENVIRONMENT["PYTHONPATH"]
    monkeypatch.setitem(workers.ENVIRONMENT, "PYTHONPATH", f"{path}:{tmp_path}")
    return "a_worker"


def make_folders(folder: Path, *names: str) -> list[Path]:
    folders = [folder / name for name in names]
    for each_one in folders:
        each_one.mkdir()
    return folders


def test_the_others_are_done(module: str, tmp_path: Path) -> None:
    good, bad, wrong, last = make_folders(tmp_path, "good", "bad", "wrong", "last")
    run(module, folders=[good, bad, wrong, last])
    assert (good / "done").exists()
    assert (last / "done").exists()
    with pytest.raises(DeadError, match=r"a_worker died with status -6:\nCheck failed: it is bad"):
        count_collectives(bad)
    with pytest.raises(DeadError, match="ValueError: this one is wrong"):
        count_collectives(wrong)


def test_a_worker_that_cannot_start_is_not_asked_for_ever(tmp_path: Path) -> None:
    folders = make_folders(tmp_path, "a", "b", "c", "d", "e")
    run("tests.laws.no_such_worker", folders=folders)
    assert all("No module named tests.laws.no_such_worker" in (each_one / FAILED).read_text() for each_one in folders)


def test_what_failed_is_not_tried_again(module: str, tmp_path: Path) -> None:
    (folder,) = make_folders(tmp_path, "one")
    (folder / FAILED).write_text("it could not be lowered")
    run(module, folders=[folder])
    assert not (folder / "done").exists()
