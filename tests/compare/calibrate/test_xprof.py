"""Joules of a window from a profile with power meters, by hand."""

import pytest

from compare.calibrate.xprof import measure_joules
from tests.compare.profile.platforms.test_tpu_meters import plane
from tests.compare.timeline.spaces import Space, tpu


def test_the_mean_power_of_every_device_between_its_events_times_the_seconds(tmp_path):
    """A core that goes from 100 W to 200 W in 500 ns and stays: over the 900 ns of its events 172.2 W, and 15 W of HBM;
    a second device at 100 W all the time."""
    space = Space()
    plane(space, watts=(100.0, 200.0))
    plane(space, device=1, watts=(100.0, 100.0))
    path = space.write(tmp_path, "window")
    first = (500 * 150 + 400 * 200) / 900 + 15
    assert measure_joules(path, seconds=2.0) == pytest.approx(2 * (first + 115))


def test_without_meters_or_without_a_profile_there_are_none(tmp_path):
    space = Space()
    tpu(space, 0, [("%f.1 = f32[8]{0} fusion(%p)", 0, 600)], Steps=[("0", 0, 1000)])
    assert measure_joules(space.write(tmp_path, "bare"), seconds=2.0) is None
    (tmp_path / "none.xplane.pb").write_bytes(b"")
    assert measure_joules(tmp_path / "none.xplane.pb", seconds=2.0) is None
