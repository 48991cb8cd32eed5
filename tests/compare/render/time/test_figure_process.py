"""Figures of time from a second process: the same as from this one, and one line where it fails."""

from typing import Any

import pytest

from compare.render.errors import ViewError
from compare.render.time.figure_process import FigureProcess
from compare.render.time.figures import pictures
from tests.compare.render.timings import with_times


def test_a_second_process_draws_the_same_bytes(report: dict[str, Any]) -> None:
    timed = with_times(report)
    drawn = FigureProcess(timed, strips=[]).pictures()
    assert {one.name for one in drawn} >= {"time-prefill-exposed", "time-prefill-network"}
    assert drawn == pictures(timed, strips=[])


def test_a_report_that_cannot_be_drawn_is_one_line() -> None:
    with pytest.raises(ViewError, match="the figures of time could not be drawn: KeyError: 'phases'"):
        FigureProcess({}, strips=[]).pictures()
