"""Joules from amounts, by hand."""

import itertools

import numpy as np
import pytest

from compare.energy.amounts import (
    AMOUNTS,
    event_amounts,
    joules,
    span,
    span_of_ratio,
    static_amounts,
)
from compare.energy.coefficients import COMPONENTS, HIGH, LOW, joule_rates
from meshes.devices.chip_file import parse_chip
from meshes.devices.generations import GENERATIONS
from tests.compare.timeline.build import comm, compute, steps, timeline

MIB = 2**20
CHIP = parse_chip(
    {
        "energy": {
            "matrix": {"value": 0.5, "low": 0.4, "high": 0.8, "unit": "pJ/FLOP"},
            "vector": {"value": 1, "unit": "pJ/op"},
            "memory": {"value": 5, "low": 4, "high": 8, "unit": "pJ/bit"},
            "ici": {"value": 2, "low": 1, "high": 4, "unit": "pJ/bit"},
            "dcn": {"value": 25, "unit": "pJ/bit"},
            "static": {"value": 80, "low": 60, "high": 100, "unit": "W"},
        }
    },
    GENERATIONS["v5e"],
    name="by hand",
)


def amounts(**known):
    return np.array([float(known.get(name, 0)) for name in AMOUNTS])


def test_a_mebibyte_over_one_link_and_to_another_slice():
    """2^20 bytes × 8 bits × 2 pJ = 16.777216 µJ, and at 25 pJ 209.7152 µJ."""
    by_component = joules(amounts(ici_byte_hops=MIB, dcn_bytes=MIB), joule_rates(CHIP))
    assert by_component.tolist() == pytest.approx([0, 0, 0, 16.777216e-6, 209.7152e-6, 0], rel=1e-12)


def test_a_millisecond_of_eight_chips_at_80_watts_is_0_64_joules():
    assert joules(static_amounts(1e6, chips=8), joule_rates(CHIP)).sum() == pytest.approx(0.64)
    assert static_amounts(np.array([1e6, 2e6]), chips=0.5)[:, 5].tolist() == pytest.approx([0.0005, 0.001])


def test_an_event_is_the_sum_of_its_components():
    """A product of 10^9 FLOPs at 0.5 pJ, 10^6 operations at 1 pJ, 10^6 bytes at 40 pJ."""
    made = timeline([compute(0, 10), comm(20, 30)], steps(0, 100))
    for name, values in (
        ("matrix_flops", [1e9, 0]),
        ("vector_ops", [1e6, 0]),
        ("memory_bytes", [1e6, 0]),
        ("ici_byte_hops", [0, MIB]),
        ("dcn_bytes", [0, 0]),
    ):
        made.events[name] = values
    by_event = joules(event_amounts(made.events), joule_rates(CHIP)).sum(axis=1)
    assert by_event.tolist() == pytest.approx([500e-6 + 1e-6 + 40e-6, 16.777216e-6])


@pytest.mark.parametrize("at", range(len(COMPONENTS)))
def test_doubling_one_coefficient_moves_its_component_alone(at):
    row, rates = np.arange(1.0, 7.0), joule_rates(CHIP)
    twice = rates.copy()
    twice[at] *= 2
    more = joules(row, twice) - joules(row, rates)
    assert np.flatnonzero(more).tolist() == [at]
    assert more[at] == pytest.approx(joules(row, rates)[at])


def test_a_total_is_least_and_most_where_all_coefficients_are():
    row = amounts(matrix_flops=1e12, chip_s=0.1)
    assert (span(row, CHIP).low, span(row, CHIP).high) == pytest.approx((0.4 + 6, 0.8 + 10))


def test_of_a_difference_each_side_has_the_same_coefficients():
    """1 TFLOP more, 10 ms of a chip less: 0.5 − 0.8 J, from 0.4 − 1.0 to 0.8 − 0.6 J; not the 4 J of either side."""
    less, more = amounts(matrix_flops=1e12, chip_s=0.1), amounts(matrix_flops=2e12, chip_s=0.09)
    assert joules(more - less, joule_rates(CHIP)).sum() == pytest.approx(-0.3)
    of_difference = span(more - less, CHIP)
    assert (of_difference.low, of_difference.high) == pytest.approx((0.4 - 1.0, 0.8 - 0.6))


def test_a_ratio_is_narrower_than_its_totals_and_within_all_corners():
    less, more = amounts(matrix_flops=1e12, chip_s=0.1), amounts(matrix_flops=3e12, chip_s=0.15)
    of_ratio = span_of_ratio(more, less, CHIP)
    # static alone would give 1.5, matrix alone 3: most where matrix is high and static low.
    assert of_ratio.high == pytest.approx((3 * 0.8 + 0.15 * 60) / (0.8 + 6))
    assert of_ratio.low == pytest.approx((3 * 0.4 + 0.15 * 100) / (0.4 + 10))
    apart = span(more, CHIP).high / span(less, CHIP).low
    assert of_ratio.high < apart
    low, high = joule_rates(CHIP, LOW), joule_rates(CHIP, HIGH)
    for weights in itertools.product((0, 0.3, 1), repeat=2):
        rates = low + np.array([weights[0], 0, 0, 0, 0, weights[1]]) * (high - low)
        assert of_ratio.low <= rates @ more / (rates @ less) <= of_ratio.high


def test_a_ratio_to_nothing_is_unknown():
    of_ratio = span_of_ratio(amounts(chip_s=1), amounts(), CHIP)
    assert np.isnan(of_ratio.low)
    assert np.isnan(of_ratio.high)


def test_amounts_of_another_width_are_refused():
    with pytest.raises(ValueError, match="rows of 6 amounts"):
        joules(np.ones(5), joule_rates(GENERATIONS["v5e"]))
