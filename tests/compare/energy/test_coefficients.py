"""The table of coefficients against the watts that it was derived from, and a user's own file."""

import pytest

from compare.energy.coefficients import (
    COEFFICIENTS,
    COMPONENTS,
    HIGH,
    LOW,
    STANDINGS,
    UNITS,
    coefficients,
)
from compare.energy.power_file import parse_power, read_power
from compare.timeline.errors import TimingError
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


def test_every_generation_has_every_component_with_its_range_source_and_standing():
    assert set(COEFFICIENTS) == set(GENERATIONS) == set(WATTS)
    for chip in COEFFICIENTS.values():
        assert tuple(chip.of) == COMPONENTS
        for name, row in chip.of.items():
            assert 0 < row.low < row.value < row.high
            assert row.unit in UNITS[name]
            assert row.standing in STANDINGS
            assert row.source


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
    chip, row = coefficients(name).rates(bound), GENERATIONS[name]
    return chip[5] + arithmetic * row.bf16_flops * chip[0] + memory * row.hbm_bytes_per_s * chip[2]


def draw_products(name, bound="value"):
    """As the schedule model plays long products: at the data sheet's peak; a tenth of the memory's rate feeds them."""
    return draw(name, arithmetic=1, memory=0.1, bound=bound)


def per_flop(name, bound="value"):
    """pJ, static power and all."""
    return 1e12 * draw_products(name, bound) / GENERATIONS[name].bf16_flops


@pytest.mark.parametrize("name", WATTS)
def test_the_figures_are_neusims_watts_by_the_data_sheets_rates(name):
    arrays, memory, vector, clock, hbm, ici = WATTS[name]
    chip, row = coefficients(name).of, GENERATIONS[name]
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
    total, share = units + memory + other + outside, coefficients(name).core_share
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
    chip = coefficients("v4")
    both = chip.of["matrix"].low * 275 + 8e-3 * chip.of["memory"].value * 1200 + chip.of["static"].value
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
    row = coefficients("v5e").of["static"]
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
    v5e, v6e = coefficients("v5e").of, coefficients("v6e").of
    most = (v5e["matrix"].high + v5e["static"].high / 0.197e3) / 1.67 - v6e["static"].high / 0.918e3
    assert v6e["matrix"].high == pytest.approx(most, abs=0.006)


NAMES = {
    "matrix, pJ/FLOP": "matrix", "vector, pJ/op": "vector", "memory, pJ/bit": "memory", "ICI, pJ/bit a link": "ici",
    "DCN, pJ/bit": "dcn", "static, W a chip": "static",
}  # fmt: skip


def test_the_docs_have_every_coefficient_with_its_range():
    text = (ROOT / "docs/energy.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    (heads,) = [row[1:6] for row in rows if row[1:3] == ["v4", "v5e"]]
    table = {NAMES[row[0]]: row[1:6] for row in rows if row[0] in NAMES}
    assert set(table) == set(NAMES.values())
    for name, cells in table.items():
        of = [coefficients(generation).of[name] for generation in heads]
        assert cells == [f"{row.value:g} ({row.low:g}–{row.high:g})" for row in of]
    (shares,) = [row[1:6] for row in rows if row[0] == "on the core's rail, of static"]
    of = [coefficients(generation).core_share for generation in heads]
    assert shares == [f"{row.value:g} ({row.low:g}–{row.high:g})" for row in of]


def test_tpu7x_stays_below_its_share_of_a_pod():
    """10 MW for 9,216 chips, with all that is around them."""
    row = GENERATIONS["tpu7x"]
    matrix, _, memory, *_, static = coefficients("tpu7x").rates(HIGH)
    assert row.bf16_flops * matrix + row.hbm_bytes_per_s * memory + static < 10e6 / 9216


def test_rates_are_joules_of_one_unit():
    rates = coefficients("v5e").rates()
    assert rates.tolist() == pytest.approx([0.35e-12, 1.73e-12, 44e-12, 17.68e-12, 200e-12, 64.0])


def test_an_unknown_generation_says_which_are_known():
    with pytest.raises(TimingError, match="no energy coefficients for 'v9'; known are v4, v5e"):
        coefficients("v9")


def test_a_file_without_coefficients_calibrates_none():
    table = {"calibrated-on": "lab", "time": {"matrix_flops_per_s": {"value": 2e13, "unit": "FLOP/s"}}}
    assert parse_power(table, generation="v5e", name="own").calibrated_on == ""
    static = {"energy": {"static": {"value": 95, "unit": "W"}}}
    assert parse_power(table | static, generation="v5e", name="own").calibrated_on == "lab"


def test_a_users_file_keeps_the_share_of_its_generations_core_rail():
    chip = parse_power({"energy": {"static": {"value": 95, "unit": "W"}}}, generation="v5e", name="own")
    assert chip.core_share == coefficients("v5e").core_share


def test_a_users_file_replaces_what_it_names(tmp_path):
    path = tmp_path / "pod.toml"
    path.write_text(
        'calibrated-on = "v5e-8"\n[energy.static]\nvalue = 95\nlow = 90\nhigh = 101\nunit = "W"\n'
        'source = "meter"\nstanding = "measured"\n[energy.dcn]\nvalue = 240\nunit = "pJ/byte"\n'
    )
    chip = read_power(path, generation="v5e")
    assert (chip.name, chip.calibrated_on) == ("pod", "v5e-8")
    assert (chip.rates(LOW)[5], chip.rates()[5], chip.rates(HIGH)[5]) == (90, 95, 101)
    assert chip.rates()[4] == chip.rates(LOW)[4] == pytest.approx(240e-12)  # without a range it has none
    assert (chip.of["dcn"].source, chip.of["dcn"].standing) == ("pod", "assumed")
    assert chip.of["matrix"] == coefficients("v5e").of["matrix"]


WRONG = [
    ({"energy": {"static": {"value": -1, "unit": "W"}}}, r"energy\.static\.value: -1 is negative"),
    ({"energy": {"static": {"value": 9}}}, r"energy\.static\.unit: missing; it is W$"),
    ({"energy": {"static": {"value": 95, "unit": [1]}}}, r"energy\.static\.unit: \[1\] is no unit of static; it is W"),
    ({"energy": {"static": {"value": 95, "unit": {"a": 1}}}},
     r"energy\.static\.unit: {'a': 1} is no unit of static; it is W"),
    ({"energy": {"memory": {"value": 9, "unit": "W"}}},
     r"energy\.memory\.unit: 'W' is no unit of memory; it is pJ/bit or pJ/byte"),
    ({"energy": {"hbm": {"value": 9, "unit": "W"}}}, r"energy\.hbm: unknown key; known are matrix, vector"),
    ({"energy": {"static": {"watts": 9, "unit": "W"}}}, r"energy\.static\.watts: unknown key"),
    ({"energy": {"static": {"unit": "W"}}}, r"energy\.static\.value: missing"),
    ({"energy": {"static": {"value": float("nan"), "unit": "W"}}}, r"energy\.static\.value: a number, not nan"),
    ({"energy": {"static": {"value": 10**400, "unit": "W"}}}, r"energy\.static\.value: a number, not 1000"),
    ({"energy": {"static": {"value": True, "unit": "W"}}}, r"energy\.static\.value: a number, not True"),
    ({"energy": {"static": {"value": 1e12, "unit": "W"}}}, "too large"),
    ({"energy": {"static": {"value": 9, "low": 10, "unit": "W"}}}, "low ≤ value ≤ high, not 10, 9 and 9"),
    ({"energy": {"static": {"value": 9, "unit": "W", "standing": "sure"}}}, r"standing: one of measured, published"),
    ({"energy": {"static": 9}}, r"energy\.static: a table with value and unit, not 9"),
    ({"energy": 9}, "energy: a table of matrix"),
    ({"power": {}}, "power: unknown key; known are name"),
    ({"name": ""}, "name: a word, not ''"),
    ({"generation": "v6e"}, "generation: these coefficients are of 'v6e', the chips are v5e"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "words"), WRONG)
def test_whatever_is_wrong_is_one_line_that_names_its_key(table, words):
    with pytest.raises(TimingError, match=words) as caught:
        parse_power(table, generation="v5e", name="own")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_toml_names_itself(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("energy = [")
    with pytest.raises(TimingError, match=r"own\.toml is not TOML"):
        read_power(path, generation="v5e")
    path.write_text("[energy.static]\nvalue = -3\nunit = 'W'\n")
    with pytest.raises(TimingError, match=r"own\.toml: energy\.static\.value: -3 is negative"):
        read_power(path, generation="v5e")
