"""The coefficients of the generations against the watts that they were derived from."""

import pytest

from compare.energy.coefficients import HIGH, joule_rates
from meshes.devices.generations import GENERATIONS
from tests.places import ROOT

# NeuSim's chips: systolic arrays × W, their memory's W, a vector unit's W, clock GHz; HBM and ICI W per GB/s.
WATTS = {
    "v4": (8 * 16.91648, 30.110208, 1.591296, 1.05, 0.01538461538, 0.01767315271),
    "v5e": (4 * 28.19413333, 50.18368, 2.65216, 1.5, 0.01261538462, 0.01767315271),
    "v5p": (8 * 28.19413333, 50.18368, 2.65216, 1.7, 0.01261538462, 0.01767315271),
    "v6e": (4 * 31.57742933, 28.1028608, 0.7426048, 1.75, 0.008830769231, 0.01262060716),
    "tpu7x": (8 * 31.57742933, 28.1028608, 0.7426048, 2.0, 0.008830769231, 0.01262060716),
}


STATIC_WATTS = {
    "v4": (8 * 1.222 + 4 * 0.427282, 21.777552, 41.22229614, 5.499 + 10.01602386),
    "v5e": (4 * 1.35868996 + 3 * 0.475076728, 24.21353615, 44.82811018, 6.114104803 + 25.66010324),
    "v5p": (8 * 1.35868996 + 6 * 0.475076728, 24.21353615, 44.82811018, 6.114104803 + 25.66010325),
    "v6e": (4 * 1.777942858 + 4 * 0.1554179582, 37.07309859, 41.27610279, 3.000278571 + 17.7605566),
    "tpu7x": (8 * 1.777942858 + 8 * 0.1554179582, 37.07309859, 41.27610279, 3.000278571 + 17.7605566),
}
"""NeuSim's static W of the arrays and vector units, of their memory, of what it calls other, of ICI and HBM."""
MEASURED_V4 = {"idle": 90, "least": 121, "mean": 170, "most": 192}
"""W of a chip of v4: idle, and of the programs of Google's production."""


def draw(name, *, arithmetic, memory, bound="value"):
    """W of a chip at these shares of its rates."""
    chip, row = joule_rates(GENERATIONS[name], bound), GENERATIONS[name]
    return chip[5] + arithmetic * row.bf16_flops * chip[0] + memory * row.hbm_bytes_per_s * chip[2]


def draw_products(name, bound="value"):
    """As the schedule model has long products: at the data sheet's peak; a tenth of the memory's rate feeds them."""
    return draw(name, arithmetic=1, memory=0.1, bound=bound)


def per_flop(name, bound="value"):
    """pJ, static power and all."""
    return 1e12 * draw_products(name, bound) / GENERATIONS[name].bf16_flops


@pytest.mark.parametrize("name", WATTS)
def test_the_figures_are_neusims_watts_by_the_data_sheets_rates(name):
    arrays, memory, vector, clock, hbm, ici = WATTS[name]
    chip, row = GENERATIONS[name].energy, GENERATIONS[name]
    full = 1e12 * (arrays + memory) / row.bf16_flops
    if name in ("v4", "v5e", "v5p"):
        assert chip["matrix"].high == pytest.approx(full, abs=0.006)
    assert chip["matrix"].low <= round(full, 2) <= chip["matrix"].high
    assert chip["vector"].value == pytest.approx(1e3 * vector / (1024 * clock), abs=0.006)
    # W per GB/s are nJ per byte: 125 pJ/bit each.
    assert chip["memory"].value == pytest.approx(125 * hbm + (3.44 if name == "tpu7x" else 3.92), abs=0.006)
    assert chip["ici"].value == pytest.approx(125 * ici, abs=0.006)
    if name != "v5e":
        assert chip["static"].value == pytest.approx(sum(STATIC_WATTS[name]), abs=0.06)


@pytest.mark.parametrize("name", STATIC_WATTS)
def test_the_share_of_static_power_on_the_cores_rail_is_neusims(name):
    """Arrays, vector units and their memory; at least without that memory, at most with what it calls other."""
    units, memory, other, outside = STATIC_WATTS[name]
    total, share = units + memory + other + outside, GENERATIONS[name].energy["core_share"]
    assert share.value == pytest.approx((units + memory) / total, abs=0.006)
    assert share.low == pytest.approx(units / total, abs=0.006)
    assert share.high == pytest.approx((units + memory + other) / total, abs=0.006)


def test_v4_draws_what_google_measured():
    """Idle it takes 90 W; long products take the most, 192 W; half of both rates the mean, 170 W."""
    assert draw("v4", arithmetic=0, memory=0) == MEASURED_V4["idle"]
    assert draw_products("v4") == pytest.approx(MEASURED_V4["most"], abs=0.5)
    assert draw_products("v4") <= MEASURED_V4["most"]
    assert draw("v4", arithmetic=0.5, memory=0.5) == pytest.approx(MEASURED_V4["mean"], abs=4)
    # The low end holds even if the most was measured at both full rates.
    chip = GENERATIONS["v4"]
    both = chip.energy["matrix"].low * 275 + 8e-3 * chip.energy["memory"].value * 1200 + chip.energy["static"].value
    assert both == pytest.approx(MEASURED_V4["most"], abs=2)


def test_v5e_and_v5p_spend_on_a_flop_what_v4_does():
    """Nothing is published of them; at 7 nm, v4 was measured: no later chip's centre is above it."""
    for name in ("v5e", "v5p"):
        assert per_flop(name) == pytest.approx(MEASURED_V4["most"] / 275, rel=0.01)
    for name in ("v5e", "v5p", "v6e", "tpu7x"):
        assert per_flop(name) <= 1.01 * MEASURED_V4["most"] / 275


def test_v5es_static_power_is_below_v4s_which_has_twice_its_cores():
    """NeuSim's file has v5p's static watts of memory, links, vector memory and other, of a chip of twice the size.

    Each by v5e's units: half the vector memory and half of `other` (one core of two), 4 of 6 links, 819 of 2765 GB/s.
    At most the vector memory and `other` are whole.  The value: idle, v4 takes 90/192 of its most.
    """
    units, memory, other, _ = STATIC_WATTS["v5e"]
    outside = 6.114104803 * 4 / 6 + 25.66010324 * 819 / 2765
    row = GENERATIONS["v5e"].energy["static"]
    assert row.low == pytest.approx(units + memory / 2 + other / 2 + outside, abs=0.6)
    assert row.high == pytest.approx(units + memory + other + outside, abs=0.6)
    assert row.value == pytest.approx(90 / 192 * draw_products("v5e"), abs=0.5)
    assert row.high < MEASURED_V4["idle"]


def test_v6e_and_tpu7x_are_as_much_more_efficient_as_google_says():
    """67 % more work a joule than v5e, static power and all; tpu7x twice v6e's."""
    assert per_flop("v5e") / per_flop("v6e") == pytest.approx(1.67, rel=0.02)
    assert per_flop("v6e") / per_flop("tpu7x") == pytest.approx(2.0, rel=0.02)


def test_the_high_end_of_v6e_is_what_google_says_if_v5e_is_at_its_high_end():
    """As the products alone: (0.83 + 87.6 ÷ 197) ÷ 1.67 − 138.8 ÷ 918."""
    v5e, v6e = GENERATIONS["v5e"].energy, GENERATIONS["v6e"].energy
    most = (v5e["matrix"].high + v5e["static"].high / 0.197e3) / 1.67 - v6e["static"].high / 0.918e3
    assert v6e["matrix"].high == pytest.approx(most, abs=0.006)


NAMES = {
    "matrix, pJ/FLOP": "matrix",
    "vector, pJ/op": "vector",
    "memory, pJ/bit": "memory",
    "ICI, pJ/bit a link": "ici",
    "DCN, pJ/bit": "dcn",
    "static, W a chip": "static",
}


def test_the_docs_have_every_coefficient_with_its_range():
    text = (ROOT / "docs/energy.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    (heads,) = [row[1:6] for row in rows if row[1:3] == ["v4", "v5e"]]
    table = {NAMES[row[0]]: row[1:6] for row in rows if row[0] in NAMES}
    assert set(table) == set(NAMES.values())
    for name, cells in table.items():
        of = [GENERATIONS[generation].energy[name] for generation in heads]
        assert cells == [f"{row.value:g} ({row.low:g}–{row.high:g})" for row in of]
    (shares,) = [row[1:6] for row in rows if row[0] == "on the core's rail, of static"]
    of = [GENERATIONS[generation].energy["core_share"] for generation in heads]
    assert shares == [f"{row.value:g} ({row.low:g}–{row.high:g})" for row in of]


def test_tpu7x_stays_below_its_share_of_a_pod():
    """10 MW for 9,216 chips, with all that is around them."""
    row = GENERATIONS["tpu7x"]
    matrix, _, memory, *_, static = joule_rates(GENERATIONS["tpu7x"], HIGH)
    assert row.bf16_flops * matrix + row.hbm_bytes_per_s * memory + static < 10e6 / 9216


def test_rates_are_joules_of_one_unit():
    rates = joule_rates(GENERATIONS["v5e"])
    assert rates.tolist() == pytest.approx([0.35e-12, 1.73e-12, 44e-12, 17.68e-12, 200e-12, 64.0])
