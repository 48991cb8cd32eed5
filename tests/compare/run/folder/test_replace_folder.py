"""Run folders beside others: what a dead process left goes, what a living one writes stays, as does what was good."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from compare.run.folder import replace_folder
from tests.places import ROOT

WRITER = """
    import sys
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from compare.run.folder import replace_folder
    from meshes.process.command_line import run_to_status

    def work():
        with replace_folder.open_replacement(Path({place!r})) as beside:
            (beside / "case.json").write_text("half")
            print("go", flush=True)
            sys.stdin.read()
            (beside / "report.html").write_text("second")
        return 0

    raise SystemExit(run_to_status(work))
"""


def writer(place: Path) -> subprocess.Popen:
    """A process that has half written a run folder, and waits."""
    script = textwrap.dedent(WRITER.format(root=str(ROOT), place=str(place)))
    started = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout
    assert started.stdout.readline() == "go\n"
    return started


def good(place: Path, text: str = "first") -> Path:
    with replace_folder.open_replacement(place) as beside:
        (beside / "case.json").write_text("{}")
        (beside / "report.html").write_text(text)
    return place


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_asks_to_end_leaves_nothing_half_made(tmp_path, number):
    place = good(tmp_path / "run")
    started = writer(place)
    started.send_signal(number)
    stdout, stderr = started.communicate()
    assert (started.returncode, stdout, stderr) == (128 + number, "", "stopped\n")
    assert names(tmp_path) == ["run"]
    assert (place / "report.html").read_text() == "first"


def test_what_a_killed_process_left_goes_with_the_next_run_and_the_good_run_stays(tmp_path):
    place = good(tmp_path / "run [1]")
    dead, alive = writer(place), writer(place)
    dead.kill()
    dead.communicate()
    assert len(names(tmp_path)) == 3
    assert (place / "report.html").read_text() == "first"
    good(place, "third")
    assert len(names(tmp_path)) == 2  # the run, and what the living one writes
    assert alive.communicate(input="", timeout=60)[1] == ""
    assert names(tmp_path) == ["run [1]"]
    assert (place / "report.html").read_text() == "second"


def test_three_at_once_each_leave_a_whole_run(tmp_path):
    writers = [writer(tmp_path / "run") for _ in range(3)]
    for started in writers:
        assert (started.communicate(input="", timeout=60)[1], started.returncode) == ("", 0)
        assert names(tmp_path / "run") == ["case.json", "report.html"]
    assert names(tmp_path) == ["run"]


def test_a_run_that_a_kill_caught_between_two_renames_goes_back_to_its_place(tmp_path):
    good(tmp_path / "run").rename(tmp_path / ".run.0123.old.part")
    with pytest.raises(ZeroDivisionError), replace_folder.open_replacement(tmp_path / "run"):
        _ = 1 / 0
    assert names(tmp_path) == ["run"]
    assert (tmp_path / "run" / "report.html").read_text() == "first"


def test_a_link_beside_a_run_is_nobody_s_leftover(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / ".run.0123.part").symlink_to(tmp_path / "mine")
    good(tmp_path / "run")
    assert names(tmp_path) == [".run.0123.part", "mine", "run"]


def test_a_file_that_is_missing_elsewhere_is_not_told_as_a_write_that_failed(tmp_path):
    with pytest.raises(FileNotFoundError), replace_folder.open_replacement(tmp_path / "run"):
        (Path(__file__).parent / "no_such_source.py").read_text()
    assert not (tmp_path / "run").exists()
