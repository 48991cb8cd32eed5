"""Figures from a second process: the same as from this one, and one line where it fails."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compare.render import figures
from compare.render.errors import ViewError
from compare.render.picture import Picture, draw_all
from compare.render.report import figure_process
from compare.render.report.figure_process import FigureProcess
from compare.render.report.kept_pictures import keep_pictures
from compare.render.time.figures import list_drawings
from compare.report.model.report import Report
from compare.run.cache import VARIABLE
from tests.compare.render.from_json import timings_by_phase
from tests.compare.render.reports import make_report
from tests.compare.render.timings import add_times

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drawn_here() -> list[Picture]:
    """The figures of bytes, by this process."""
    return draw_all(figures.list_drawings(Report.from_json(make_report())))


def test_a_second_process_draws_the_same_bytes_whatever_a_matplotlibrc_says(
    report: dict[str, Any], drawn_here: list[Picture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "matplotlibrc").write_text("axes.grid: True\nlines.linewidth: 5\n")
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path / "matplotlibrc"))
    timed = add_times(report)
    phases, read = timings_by_phase(timed), Report.from_json(timed)
    with FigureProcess() as process:
        of_bytes, of_times = process.draw_bytes(read), process.draw_times(phases, num_devices=8, strips=[])
        assert of_bytes.result() == drawn_here
        assert {result.name for result in of_times.result()} >= {"time-prefill-exposed", "time-prefill-network"}
        assert of_times.result() == draw_all(list_drawings(phases, num_devices=8, strips=[]))


def test_what_was_drawn_needs_no_process(
    report: dict[str, Any], drawn_here: list[Picture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    drawn = []
    for _ in range(2):
        with FigureProcess(keep_pictures) as process:
            drawn.append((process.draw_bytes(Report.from_json(report)).result(), process._process is not None))
    assert drawn == [(drawn_here, True), (drawn_here, False)]


def test_the_figures_of_bytes_need_no_times(report: dict[str, Any], drawn_here: list[Picture]) -> None:
    """So they can be drawn while the programs are timed."""
    assert draw_all(figures.list_drawings(Report.from_json(add_times(report)))) == drawn_here


def test_times_that_cannot_be_drawn_are_one_line(report: dict[str, Any]) -> None:
    words = "the figures of time could not be drawn: IndexError: index 4 is out of bounds for axis 1 with size 1"
    with FigureProcess() as process, pytest.raises(ViewError, match=words):
        process.draw_times(timings_by_phase(add_times(report)), num_devices=1, strips=[]).result()


def test_one_that_dies_is_started_once_more(
    report: dict[str, Any],
    drawn_here: list[Picture],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    read = Report.from_json(report)
    with FigureProcess() as process:
        assert process._process
        process._process.kill()
        process._process.wait()
        assert process.draw_bytes(read).result() == drawn_here
    assert capsys.readouterr().err == "the process that draws died, and is started again: no reason was given\n"
    monkeypatch.setattr(
        figure_process, "COMMAND", (sys.executable, "-X", "faulthandler", "-c", "import os; os.abort()")
    )
    with (
        FigureProcess() as process,
        pytest.raises(ViewError, match="bytes could not be drawn: Fatal Python error: Abort"),
    ):
        process.draw_bytes(read).result()


def test_one_that_nobody_waits_for_is_ended(report: dict[str, Any]) -> None:
    with FigureProcess() as process:
        drawn = process.draw_bytes(Report.from_json(report))
    assert drawn.done()
    assert process._process
    assert process._process.poll() is not None


FORKS = """
import os

from compare.render.picture import Picture
from compare.render.report.figure_process import draw_in_two

picture = Picture(name="dot", caption="", png=b"", svg=b"")
print(len(draw_in_two([lambda: picture] * 3)))
draw_in_two([lambda: picture, lambda: os._exit(3)])
"""


def test_a_fork_that_dies_is_said() -> None:
    """In a process of its own, as in a run: JAX, which other tests start in this one, warns of every fork."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False)
    assert done.stdout == "3\n"
    assert done.stderr.splitlines()[-1] == ("RuntimeError: the second process that drew them ended with exit status 3")
