"""Voltage against frequency, from a line or a table."""

import json
import re

import pytest

from compare.cli.options.energy_request import parse_frequencies
from compare.energy.voltage import Voltage, parse_voltage
from compare.timeline.errors import TimingError
from tests.places import ROOT


def test_a_line_of_slope_gamma():
    """At half the frequency 1 − 0.5 · 0.5, at 1.1 times 1 + 0.5 · 0.1; none where V is fixed."""
    assert [Voltage().at(f) for f in (0.5, 1, 1.1)] == pytest.approx([0.75, 1, 1.05])
    assert Voltage(0.0).at(0.5) == 1
    assert Voltage(1.0).at(0.5) == 0.5
    assert (Voltage().slope, Voltage(1.0).slope) == (0.5, 1.0)


def test_a_table_is_straight_between_its_points():
    voltage = parse_voltage({"points": [[0.5, 0.8], [1.0, 1.0], [1.2, 1.1]]})
    assert [voltage.at(f) for f in (0.5, 0.75, 1, 1.1)] == pytest.approx([0.8, 0.9, 1, 1.05])
    # 1 % up is 0.5 % of the voltage, 1 % down 0.4 %.
    assert voltage.slope == pytest.approx(0.45, abs=0.001)
    with pytest.raises(TimingError, match=r"voltage\.points are of 0\.5 to 1\.2 of the frequency, not of 0\.4"):
        voltage.at(0.4)


def test_a_table_that_ends_at_the_nominal_point_has_a_slope_there():
    """The derivative needs ±1 %: its last line goes on that far, and no farther."""
    below = parse_voltage({"points": [[0.5, 0.8], [1.0, 1.0]]})
    assert [below.at(f) for f in (0.99, 1, 1.01)] == pytest.approx([0.996, 1, 1.004])
    assert below.slope == pytest.approx(0.4, abs=1e-4)
    above = parse_voltage({"points": [[1.0, 1.0], [1.1, 1.06]]})
    assert above.at(0.99) == pytest.approx(0.994)
    assert above.slope == pytest.approx(0.6, abs=1e-4)
    short = parse_voltage({"points": [[0.5, 0.8], [1.0, 1.0], [1.005, 1.01]]})
    assert short.at(1.01) == pytest.approx(1.02)
    with pytest.raises(TimingError, match=r"voltage\.points are of 0\.5 to 1 of the frequency, not of 1\.05; add a po"):
        below.at(1.05)


def test_the_docs_table_covers_the_docs_range():
    page = (ROOT / "docs/calibration.md").read_text(encoding="utf-8")
    (points,) = re.findall(r"points = (\[\[.*\]\])", page)
    (words,) = set(re.findall(r"--frequency (\d\S*)", page))
    voltage = parse_voltage({"points": json.loads(points)})
    assert all(voltage.at(frequency) > 0 for frequency in parse_frequencies(words))


def test_what_nobody_gave_is_assumed():
    assert parse_voltage({}).is_assumed
    assert not parse_voltage({"gamma": 0.5}).is_assumed
    assert not parse_voltage({"points": [[0.5, 0.8], [1.0, 1.0]]}).is_assumed


def test_a_line_that_reaches_nothing_is_refused():
    with pytest.raises(TimingError, match="with gamma 1 there is no voltage at 0 of the frequency"):
        Voltage(1.0).at(0.0)


WRONG = [
    ({"volts": 1}, r"voltage\.volts: unknown key.*; known are gamma, points"),
    ({"gamma": 0.5, "points": []}, "voltage: gamma or points, not both"),
    ({"gamma": 2}, r"voltage\.gamma: a number from 0 to 1, not 2"),
    ({"gamma": True}, r"voltage\.gamma: a number from 0 to 1"),
    ({"points": [[1.0, 1.0]]}, r"voltage\.points: two to 100 pairs"),
    ({"points": [[1.0, 1.0], [0.5, 0.8]]}, r"voltage\.points: each f/f0 is larger than the one before"),
    ({"points": [[0.5, 0.8], [0.9, 1.0]]}, r"voltage\.points: one of them is \[1\.0, 1\.0\]"),
    ({"points": [[0.5, -1], [1.0, 1.0]]}, r"voltage\.points: \[f/f0, V/V0\], two positive numbers"),
    ({"points": [0.5, 1.0]}, r"voltage\.points: \[f/f0, V/V0\], two positive numbers, not 0\.5"),
]


@pytest.mark.parametrize(("table", "words"), WRONG)
def test_whatever_is_wrong_is_one_line_that_names_its_key(table, words):
    with pytest.raises(TimingError, match=words) as caught:
        parse_voltage(table)
    assert "\n" not in str(caught.value)
