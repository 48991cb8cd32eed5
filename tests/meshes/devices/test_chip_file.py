"""The files of the generations against the schema, and a user's file: what it replaces, and what is wrong with it."""

import re
import tomllib

import pytest

from compare.energy.coefficients import COMPONENTS, HIGH, JOULES, LOW, energy_calibrated_on, joule_rates
from compare.energy.voltage import Voltage, parse_voltage
from compare.schedule.hardware import Hardware, dcn_bytes_per_s, describe_times, times_calibrated_on
from meshes.devices import generations
from meshes.devices.chip_file import SCHEMA, STANDINGS, parse_chip, read_chip
from meshes.devices.generations import GENERATIONS, NAMES
from meshes.process.errors import MeshError
from tests.places import ROOT

FOLDER = ROOT / "meshes" / "devices"
V5E = GENERATIONS["v5e"]
MEASURED_ONLY = {"dispatch_s", "matrix_flops_per_s", "vector_ops_per_s", "memory_bytes_per_s"}
"""What calibration finds, and the model takes from the data sheet, or not at all."""
UNSTATED = {"tpu7x": {"sheet": {"ici_link_bytes_per_s", "clock_hz"}}}


def test_every_generation_has_a_file_and_a_name():
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(NAMES) == set(GENERATIONS)
    assert len(NAMES) == len(GENERATIONS) == 5


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_source_and_standing_and_its_range_holds_it(name):
    """Of the file itself, not of what the reader makes of it."""
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    assert set(table) == {"name", "slice", *SCHEMA}
    assert table["name"] == name
    clock = {"clock_hz"} if name == "tpu7x" else set()
    assert set(table["sheet"]) == set(SCHEMA["sheet"]) - UNSTATED.get(name, {}).get("sheet", set())
    assert set(table["time"]) == set(SCHEMA["time"]) - MEASURED_ONLY - {"clock_hz"} | clock
    assert set(table["energy"]) == set(SCHEMA["energy"])
    for part, units in SCHEMA.items():
        for key, row in table[part].items():
            assert row["source"], key
            assert row["standing"] in STANDINGS, key
            assert row["unit"] in units[key]
            assert ("low" in row) == ("high" in row) == (part == "energy")
            if part == "energy":
                assert 0 < row["low"] < row["value"] < row["high"]
            else:
                assert row["value"] > 0
    assert table["slice"]["source"]
    assert table["slice"]["standing"] in STANDINGS


def test_every_source_in_brackets_is_named_once():
    """`[cloud]` of a figure stands in the list of sources."""
    words = {
        word.partition("]")[0]
        for name in NAMES
        for part in SCHEMA
        for row in getattr(GENERATIONS[name], part).values()
        for word in row.source.split("[")[1:]
    }
    assert words == {"cloud", "book", "v4", "jax", "neusim", "hbm2", "hbm3e", "talk", "trillium", "ironwood"}
    assert all(f"[{word}]" in generations.__doc__ for word in words)


def test_the_page_lists_every_key_and_its_units():
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.split("| table | key | unit | |")[1].split("\n\n")[0].splitlines()[2:]
    ]
    listed, part = {}, ""
    for table, keys, units, _ in rows:
        part = table.strip("`") or part
        for key in re.findall("`([a-z0-9_]+)`", keys):
            listed[part, key] = set(re.split("; | or ", units))
    known = {(part, key): set(units) for part in SCHEMA for key, units in SCHEMA[part].items()}
    assert set(listed) == set(known)
    assert [place for place in known if not known[place] <= listed[place]] == []


def test_the_example_of_the_page_is_a_chip_file(tmp_path):
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    text = page.split("<!-- example: chip -->\n```toml\n")[1].split("```")[0]
    (tmp_path / "own.toml").write_text(text)
    chip = read_chip(tmp_path / "own.toml", V5E)
    assert chip.own == {"time.link_bytes_per_s", "energy.static"}
    assert (chip.title, describe_times(chip)) == ("our v5e pod", "calibrated on v5e-8, June")


def test_an_energy_is_of_a_component_and_its_unit():
    assert set(SCHEMA["energy"]) == {*COMPONENTS, "core_share"}
    assert {unit for key in COMPONENTS for unit in SCHEMA["energy"][key]} == set(JOULES)


def test_an_unknown_generation_says_which_are_known():
    with pytest.raises(MeshError, match="unknown TPU generation 'v9'; known are v5e, v6e, v4, v5p, tpu7x"):
        generations.generation("v9")
    assert "v9" not in GENERATIONS
    assert GENERATIONS.get("v9") is None


def test_a_full_copy_of_a_generations_file_is_that_generation(tmp_path):
    """Nothing in it is a user's own, so nothing is called calibrated."""
    path = tmp_path / "mine.toml"
    path.write_bytes((FOLDER / "v5e.toml").read_bytes())
    chip = read_chip(path, V5E)
    assert (chip.own, chip.name, chip.title) == (frozenset(), "v5e", "v5e")
    assert (Hardware.of(chip), describe_times(chip)) == (Hardware.of(V5E), "")


def own(base=V5E, **table):
    return parse_chip(table, base, name="own")


def figures(**rows):
    units = {
        "link_bytes_per_s": "byte/s",
        "memory_bytes_per_s": "byte/s",
        "launch_s": "s",
        "cycle_factor": "×",
        "matrix_flops_per_s": "FLOP/s",
        "clock_hz": "Hz",
        "bf16_flops": "FLOP/s",
        "hbm_reach": "of sheet",
        "hbm_bytes": "byte",
        "dcn_bytes_per_s": "byte/s",
    }
    return {name: {"value": value, "unit": units[name]} for name, value in rows.items()}


def test_rates_replace_those_of_the_generation_and_leave_the_others():
    usual = Hardware.of(V5E)
    rates = Hardware.of(own(time=figures(link_bytes_per_s=4e10, memory_bytes_per_s=7e11, launch_s=2e-6)))
    assert (rates.link_bytes_per_ns, rates.hbm_bytes_per_ns) == pytest.approx((40, 700))
    assert rates.launch_ns == pytest.approx(2000)
    assert (rates.cycle_ns, rates.hop_ns) == (usual.cycle_ns, usual.hop_ns)


def test_the_cycle_factor_is_of_the_clock_and_not_of_the_one_that_it_replaces():
    """1.5 GHz and a factor of 0.9: 0.6 ns a cycle; at 3 GHz 0.3."""
    assert Hardware.of(own(time=figures(cycle_factor=0.9))).cycle_ns == pytest.approx(0.6)
    assert Hardware.of(own(time=figures(cycle_factor=0.9, clock_hz=3e9))).cycle_ns == pytest.approx(0.3)


def test_a_data_sheet_of_ones_own_is_the_peak_of_its_chips():
    chip = own(sheet=figures(bf16_flops=4e14))
    assert (chip.bf16_flops, chip.hbm_bytes_per_s) == (4e14, V5E.hbm_bytes_per_s)
    assert Hardware.of(chip).flops_per_ns == pytest.approx(4e5)
    assert describe_times(chip) == "with its own data sheet"


def test_the_share_of_a_hosts_cards_is_of_a_device_or_of_a_chip_as_its_unit_says():
    """tpu7x has two devices a chip: 12.5 GB/s of the chip are 6.25 of each."""
    row = GENERATIONS["tpu7x"]
    assert dcn_bytes_per_s(row) == 12.5e9
    assert Hardware.of(row).dcn_bytes_per_ns == 6.25
    of_device = own(row, time=figures(dcn_bytes_per_s=6.25e9))
    assert Hardware.of(of_device) == Hardware.of(row)


def test_a_rate_of_products_alone_calibrates_no_step():
    """Products last by the compiler's estimates; the rate is of kernels whose author states their FLOPs."""
    rate = figures(matrix_flops_per_s=2e13)
    chip = own(time=rate, **{"calibrated-on": "lab"})
    assert Hardware.of(chip).flops_per_ns == pytest.approx(2e4)
    assert (times_calibrated_on(chip), describe_times(chip)) == ("", "with its own rate of kernels")
    both = own(time=rate | figures(link_bytes_per_s=4e10), **{"calibrated-on": "lab"})
    assert (times_calibrated_on(both), describe_times(both)) == ("lab", "calibrated on lab")
    assert describe_times(own(time=figures(link_bytes_per_s=4e10))) == "calibrated"


def test_a_file_without_coefficients_calibrates_none():
    time = own(time=figures(matrix_flops_per_s=2e13), **{"calibrated-on": "lab"})
    assert energy_calibrated_on(time) == ""
    static = own(energy={"static": {"value": 95, "unit": "W"}}, **{"calibrated-on": "lab"})
    assert (energy_calibrated_on(static), times_calibrated_on(static)) == ("lab", "")
    assert static.energy["core_share"] == V5E.energy["core_share"]


def test_coefficients_replace_what_they_name(tmp_path):
    path = tmp_path / "pod.toml"
    path.write_text(
        'calibrated-on = "v5e-8"\n[energy.static]\nvalue = 95\nlow = 90\nhigh = 101\nunit = "W"\n'
        'source = "meter"\nstanding = "measured"\n[energy.dcn]\nvalue = 240\nunit = "pJ/byte"\n'
    )
    chip = read_chip(path, V5E)
    assert (chip.title, energy_calibrated_on(chip)) == ("pod", "v5e-8")
    assert (joule_rates(chip, LOW)[5], joule_rates(chip)[5], joule_rates(chip, HIGH)[5]) == (90, 95, 101)
    assert joule_rates(chip)[4] == joule_rates(chip, LOW)[4] == pytest.approx(240e-12)  # without a range it has none
    assert (chip.energy["dcn"].source, chip.energy["dcn"].standing) == ("pod", "assumed")
    assert chip.energy["matrix"] == V5E.energy["matrix"]


def test_a_voltage_is_handed_on_and_its_old_core_share_is_a_figure_of_energy(tmp_path, capsys):
    path = tmp_path / "own.toml"
    path.write_text("[voltage]\ngamma = 0.4\ncore_share = 0.3\n")
    for _ in range(2):
        chip = read_chip(path, V5E)
    assert parse_voltage(chip.voltage) == Voltage(0.4, is_assumed=False)
    share = chip.energy["core_share"]
    assert (share.value, share.low, share.high) == (0.3, 0.3, 0.3)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("own.toml: core_share of [voltage] is [energy.core_share] now, a figure with value and unit")
    new = own(energy={"core_share": {"value": 0.3, "unit": "of static"}})
    assert new.energy["core_share"] == share
    assert parse_voltage(new.voltage) == Voltage()


STATIC = {"value": 95, "unit": "W"}
WRONG = [
    ({"energy": {"static": STATIC | {"value": -1}}}, r"energy\.static\.value: -1 is out of range; from 0 to 1e\+09 \("),
    ({"energy": {"static": STATIC | {"value": 1e12}}}, r"static\.value: 1000000000000\.0 is out of range; from 0 to"),
    ({"energy": {"static": {"value": 9}}}, r"energy\.static\.unit: missing; it is W$"),
    ({"energy": {"static": STATIC | {"unit": [1]}}}, r"energy\.static\.unit: \[1\] is not its unit; it is W$"),
    ({"energy": {"static": STATIC | {"unit": {"a": 1}}}}, r"energy\.static\.unit: {'a': 1} is not its unit; it is W$"),
    ({"energy": {"memory": STATIC}}, r"energy\.memory\.unit: 'W' is not its unit; it is pJ/bit or pJ/byte$"),
    ({"energy": {"hbm": STATIC}}, r"energy\.hbm: unknown key; known are matrix, vector"),
    ({"energy": {"statik": STATIC}}, r"energy\.statik: unknown key, nearest is static; known are matrix"),
    ({"energy": {"static": {"watts": 9, "unit": "W"}}}, r"energy\.static\.watts: unknown key; known are value"),
    ({"energy": {"static": {"unit": "W"}}}, r"energy\.static\.value: missing; a number \(W\)$"),
    ({"energy": {"static": STATIC | {"value": float("nan")}}}, r"energy\.static\.value: nan is out of range"),
    ({"energy": {"static": STATIC | {"value": 10**400}}}, r"energy\.static\.value: 1000.* is out of range"),
    ({"energy": {"static": STATIC | {"value": True}}}, r"energy\.static\.value: True is no number \(W\)$"),
    ({"energy": {"static": STATIC | {"low": 96}}}, "energy.static: low ≤ value ≤ high, not 96, 95 and 95"),
    ({"energy": {"static": STATIC | {"high": "x"}}}, r"energy\.static\.high: 'x' is no number"),
    ({"energy": {"static": STATIC | {"standing": "sure"}}}, r"standing: one of measured, published, .* not 'sure'"),
    ({"energy": {"static": STATIC | {"source": 3}}}, r"energy\.static\.source: a word, not 3"),
    ({"energy": {"static": 9}}, r"energy\.static: a table with value and unit, not 9"),
    ({"energy": 9}, "energy: a table of matrix"),
    ({"time": 3}, "time: a table of dispatch_s, clock_hz, cycle_factor"),
    ({"time": {"speed": {}}}, r"time\.speed: unknown key.*; known are dispatch_s"),
    ({"time": {"link_byte_per_s": {}}}, r"time\.link_byte_per_s: unknown key, nearest is link_bytes_per_s; known are"),
    ({"time": {"hop_s": 3}}, r"time\.hop_s: a table with value and unit, not 3"),
    ({"time": {"hop_s": {"value": 1, "unit": "ns"}}}, r"time\.hop_s\.unit: 'ns' is not its unit; it is s$"),
    ({"time": {"hop_s": {"value": 1}}}, r"time\.hop_s\.unit: missing; it is s$"),
    ({"time": {"hop_s": {"unit": "s", "value": "1"}}}, r"time\.hop_s\.value: '1' is no number \(s\)$"),
    ({"time": {"hop_s": {"unit": "s", "value": -1}}}, r"time\.hop_s\.value: -1 is out of range; from 0 to 1e\+30"),
    ({"time": {"hop_s": {"unit": "s", "value": 1, "by": "me"}}}, r"time\.hop_s\.by: unknown key"),
    ({"time": figures(link_bytes_per_s=0)}, r"link_bytes_per_s\.value: 0 is out of range; more than 0"),
    ({"time": figures(hbm_reach=0.9, memory_bytes_per_s=7e11)}, "time: hbm_reach or memory_bytes_per_s, not both"),
    ({"sheet": figures(hbm_bytes=2**30)}, r"sheet\.hbm_bytes: programs are compiled for v5e, which has 17179869184"),
    ({"slice": {"devices": 2}}, r"slice\.devices: programs are compiled for v5e, which has 1, not 2"),
    ({"slice": {"device": 1}}, r"slice\.device: unknown key, nearest is devices; known are torus_dims"),
    ({"voltage": 3}, "voltage: a table of gamma or points, not 3"),
    ({"voltage": {"core_share": 1.5}}, r"voltage\.core_share\.value: 1\.5 is out of range; from 0 to 1"),
    ({"power": {}}, "power: unknown key; known are name"),
    ({"energie": {}}, "energie: unknown key, nearest is energy; known are name"),
    ({"name": ""}, "name: a word, not ''"),
    ({"calibrated-on": 3}, "calibrated-on: a word, not 3"),
    ({"generation": "v6e"}, "generation: this file is of 'v6e', the chips are v5e"),
]


@pytest.mark.parametrize(("table", "words"), WRONG)
def test_whatever_is_wrong_is_one_line_that_names_its_key(table, words):
    with pytest.raises(MeshError, match=words) as caught:
        own(**table)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_toml_names_itself(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("energy = [")
    with pytest.raises(MeshError, match=r"own\.toml is not TOML"):
        read_chip(path, V5E)
    path.write_text("[energy.static]\nvalue = -3\nunit = 'W'\n")
    with pytest.raises(MeshError, match=r"own\.toml: energy\.static\.value: -3 is out of range"):
        read_chip(path, V5E)
