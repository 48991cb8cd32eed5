"""The page of a talk's case: its numbers by hand, and its tables as the program makes them."""

import csv

import pytest

from benchmarks.marginal_case import (
    COMPUTE,
    FOLDER,
    NOMINAL,
    PARAMETERS,
    SCALE_OUT,
    SCALE_UP,
    build_case,
    compute_seconds,
    fill_page,
    list_cases,
    scale_out,
    scale_up,
    turning_share,
)


def test_the_models_parameters_are_as_published():
    """68.98 billion; the name says 70."""
    assert PARAMETERS == 68_976_648_192


def test_what_a_gpu_sends_and_computes():
    """Of 137.95 GB of parameters an eighth, 3/4 of it twice, at 50 GB/s; 320 all-reduces of 67.1 MB, 7/4 of each, at
    400 GB/s; 4096 × (6 × 68.71e9 + 12 × 80 × 8192 × 4096) FLOPs ÷ 8 ÷ 494.7e12."""
    assert scale_out().seconds == pytest.approx(1.5 * 2 * 68.976648192e9 / 8 / 50e9)
    assert scale_out().joules == pytest.approx(1.5 * 17.244162e9 * 8 * 25e-12)
    assert scale_up(1).seconds == pytest.approx(320 * 1.75 * 67_108_864 / 400e9)
    flops = 4096 * (6 * (68_976_648_192 - 32000 * 8192) + 12 * 80 * 8192 * 4096)
    assert compute_seconds(1) == pytest.approx(flops / 8 / 494.7e12)


@pytest.mark.parametrize(("gamma", "exposed"), [(0.5, 0.125), (1.0, 0.25), (0.0, 0.0)])
@pytest.mark.parametrize("sequences", [1, 64])
def test_the_conclusion_turns_at_an_eighth_and_at_a_quarter_whatever_the_batch(gamma, exposed, sequences):
    assert turning_share(scale_out(), gamma) == pytest.approx(exposed)
    more = build_case(sequences, hidden=1 - exposed - 0.02, gamma=gamma).marginal(SCALE_OUT)
    less = build_case(sequences, hidden=min(1.0, 1 - exposed + 0.02), gamma=gamma).marginal(SCALE_OUT)
    assert more > 0
    assert less < 0 if gamma else less == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("part", [COMPUTE, SCALE_UP, SCALE_OUT])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_the_central_difference_is_the_formula(part, gamma):
    """(P_static · t_exposed − 2γ · E_dyn) ÷ E."""
    case = build_case(4, hidden=0.5, gamma=gamma)
    exposed = {COMPUTE: case.compute_s, SCALE_UP: case.up.seconds, SCALE_OUT: case.out.seconds / 2}[part]
    by_hand = (80 * exposed - 2 * gamma * case.dynamic[part]) / case.joules(NOMINAL)
    assert case.marginal(part) == pytest.approx(by_hand, abs=2e-4)


def test_a_gpu_takes_700_watts_while_it_computes():
    case = build_case(1, hidden=1.0, gamma=0.5)
    assert 80 * case.compute_s + case.dynamic[COMPUTE] == pytest.approx(700 * case.compute_s)


def test_the_page_and_its_data_are_as_they_are_made():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert fill_page(page) == page
    with (FOLDER / "cases.csv").open(encoding="utf-8") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    for row, case in zip(rows, list_cases(), strict=True):
        assert row == pytest.approx(case, rel=1e-5, abs=1e-12)
