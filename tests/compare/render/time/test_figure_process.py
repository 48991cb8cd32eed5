"""Figures of time from a second process: the same as from this one, and one line where it fails."""

from typing import Any

import pytest

from compare.render.errors import ViewError
from compare.render.time.figure_process import FigureProcess
from compare.render.time.figures import draw_pictures
from tests.compare.render.from_json import timings_by_phase
from tests.compare.render.timings import add_times


def test_a_second_process_draws_the_same_bytes(report: dict[str, Any]) -> None:
    phases = timings_by_phase(add_times(report))
    drawn = FigureProcess(phases, num_devices=8, strips=[]).pictures()
    assert {one.name for one in drawn} >= {"time-prefill-exposed", "time-prefill-network"}
    assert drawn == draw_pictures(phases, num_devices=8, strips=[])


def test_times_that_cannot_be_drawn_are_one_line(report: dict[str, Any]) -> None:
    words = "the figures of time could not be drawn: IndexError: index 4 is out of bounds for axis 1 with size 1"
    with pytest.raises(ViewError, match=words):
        FigureProcess(timings_by_phase(add_times(report)), num_devices=1, strips=[]).pictures()
