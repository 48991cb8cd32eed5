"""The schedule model's constants from a file, and a step that is modelled with them."""

import pytest

from compare.schedule.hardware import Hardware
from compare.schedule.time_file import parse_times, read_times
from compare.timeline.errors import TimingError
from meshes.devices.generations import GENERATIONS

V5E = GENERATIONS["v5e"]


def table(**rows):
    units = {"link_bytes_per_s": "byte/s", "memory_bytes_per_s": "byte/s", "launch_s": "s", "cycle_factor": "×"}
    return {"time": {name: {"value": value, "unit": units[name]} for name, value in rows.items()}}


def test_constants_replace_those_of_the_generation_and_leave_the_others():
    usual = Hardware.of(V5E)
    times = parse_times(table(link_bytes_per_s=4e10, memory_bytes_per_s=7e11, launch_s=2e-6), V5E)
    assert (times.hardware.link_bytes_per_ns, times.hardware.hbm_bytes_per_ns) == pytest.approx((40, 700))
    assert times.hardware.launch_ns == pytest.approx(2000)
    assert (times.hardware.cycle_ns, times.hardware.hop_ns) == (usual.cycle_ns, usual.hop_ns)


def test_the_cycle_factor_is_of_the_clock_and_not_of_the_one_that_it_replaces():
    """1.5 GHz and a factor of 0.9: 0.6 ns a cycle."""
    assert parse_times(table(cycle_factor=0.9), V5E).hardware.cycle_ns == pytest.approx(0.6)


def test_a_rate_of_products_alone_calibrates_no_step():
    """Products last by the compiler's estimates; the rate is of kernels whose author states their FLOPs."""
    rate = {"matrix_flops_per_s": {"value": 2e13, "unit": "FLOP/s"}}
    times = parse_times({"calibrated-on": "lab", "time": rate}, V5E)
    assert times.hardware.flops_per_ns == pytest.approx(2e4)
    assert (times.calibrated_on, times.words) == ("", "with its own rate of kernels")
    link = table(link_bytes_per_s=4e10)["time"]
    assert parse_times({"calibrated-on": "lab", "time": rate | link}, V5E).words == "calibrated on lab"


def test_a_file_without_times_leaves_the_generations():
    assert parse_times({"energy": {}}, V5E) is None


WRONG = [
    ({"time": 3}, "time: a table of dispatch_s, cycle_factor"),
    ({"time": {"speed": {}}}, r"time\.speed: unknown key; known are dispatch_s"),
    ({"time": {"hop_s": 3}}, r"time\.hop_s: a table with value and unit, not 3"),
    ({"time": {"hop_s": {"value": 1, "unit": "ns"}}}, r"time\.hop_s\.unit: 'ns' is not its unit; it is s"),
    ({"time": {"hop_s": {"value": 1}}}, r"time\.hop_s\.unit: missing; it is s"),
    ({"time": {"hop_s": {"unit": "s"}}}, r"time\.hop_s\.value: missing; a number of s"),
    ({"time": {"hop_s": {"unit": "s", "value": "1"}}}, r"time\.hop_s\.value: '1'; a number of s"),
    ({"time": {"hop_s": {"unit": "s", "value": -1}}}, r"time\.hop_s\.value: -1 is out of range; .* 0 or more"),
    (table(link_bytes_per_s=0), r"link_bytes_per_s\.value: 0 is out of range; .* above 0"),
    (table(link_bytes_per_s=float("nan")), r"link_bytes_per_s\.value: nan is out of range"),
    ({"time": {"hop_s": {"unit": "s", "value": 1, "by": "me"}}}, r"time\.hop_s\.by: unknown key"),
    ({"generation": "cpu", "time": {}}, "generation: these constants are of 'cpu', the chips are v5e"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "words"), WRONG)
def test_whatever_is_wrong_is_one_line_that_names_its_key(wrong, words):
    with pytest.raises(TimingError, match=words) as caught:
        parse_times(wrong, V5E)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_toml_names_itself(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("time = [")
    with pytest.raises(TimingError, match=r"own\.toml is not TOML"):
        read_times(path, V5E)
    path.write_text("time = 3")
    with pytest.raises(TimingError, match=r"own\.toml: time: a table"):
        read_times(path, V5E)
