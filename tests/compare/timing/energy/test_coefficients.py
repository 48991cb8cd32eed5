"""The table of coefficients against the watts that it was derived from, and a user's own file."""

import pytest

from compare.timing.energy.coefficients import (
    COEFFICIENTS,
    COMPONENTS,
    HIGH,
    LOW,
    STANDINGS,
    UNITS,
    coefficients,
)
from compare.timing.energy.power_file import parse_power, read_power
from compare.timing.errors import TimingError
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


@pytest.mark.parametrize("name", WATTS)
def test_the_figures_are_neusims_watts_by_the_data_sheets_rates(name):
    arrays, memory, vector, clock, hbm, ici = WATTS[name]
    chip, row = coefficients(name).of, GENERATIONS[name]
    full = 1e12 * (arrays + memory) / row.bf16_flops
    at_most = 192 - 90  # of v4, measured; NeuSim's dynamic powers of v4 add up to 192.3 at full rate
    least = full * at_most / 192.3
    if name in ("v4", "v5e", "v5p"):
        assert chip["matrix"].high == pytest.approx(full, abs=0.006)
        assert chip["matrix"].value == pytest.approx((least + full) / 2, abs=0.006)
    else:
        assert chip["matrix"].value == pytest.approx(full, abs=0.006)
    assert chip["matrix"].low == pytest.approx(least, abs=0.006)
    assert chip["vector"].value == pytest.approx(1e3 * vector / (1024 * clock), abs=0.006)
    # W per GB/s are nJ per byte: 125 pJ/bit each.
    assert chip["memory"].value == pytest.approx(125 * hbm + (3.44 if name == "tpu7x" else 3.92), abs=0.006)
    assert chip["ici"].value == pytest.approx(125 * ici, abs=0.006)


def test_the_high_ends_of_v6e_and_tpu7x_are_what_google_says_of_their_efficiency():
    """67 % more work per joule than v5e at its low end, static power and all; tpu7x twice v6e's per watt."""
    (v5e, _, _, _, _, idle), peak = coefficients("v5e").rates(LOW), GENERATIONS["v5e"].bf16_flops
    v6e = coefficients("v6e")
    most = (v5e + idle / peak) / 1.67 - v6e.of["static"].value / GENERATIONS["v6e"].bf16_flops
    assert v6e.of["matrix"].high == pytest.approx(1e12 * most, abs=0.006)
    assert coefficients("tpu7x").of["matrix"].high == v6e.of["matrix"].high / 2


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


def test_v4_stays_within_what_was_measured():
    """A step that reaches 40 % of the arithmetic and half the memory's rate: Google's mean is 170 W, its most 192 W."""
    chip, row = coefficients("v4"), GENERATIONS["v4"]
    matrix, _, memory, *_, static = chip.rates()
    usual = 0.4 * row.bf16_flops * matrix + 0.5 * row.hbm_bytes_per_s * memory + static
    assert usual == pytest.approx(170, abs=4)
    assert 0.6 * row.bf16_flops * chip.rates(LOW)[0] + static < 192


def test_tpu7x_stays_below_its_share_of_a_pod():
    """10 MW for 9,216 chips, with all that is around them."""
    row = GENERATIONS["tpu7x"]
    matrix, _, memory, *_, static = coefficients("tpu7x").rates(HIGH)
    assert row.bf16_flops * matrix + row.hbm_bytes_per_s * memory + static < 10e6 / 9216


def test_rates_are_joules_of_one_unit():
    rates = coefficients("v5e").rates()
    assert rates.tolist() == pytest.approx([0.63e-12, 1.73e-12, 44e-12, 17.68e-12, 200e-12, 107.7])


def test_an_unknown_generation_says_which_are_known():
    with pytest.raises(TimingError, match="no energy coefficients for 'v9'; known are v4, v5e"):
        coefficients("v9")


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
