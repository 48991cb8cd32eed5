"""Power counters of a TPU's profile, by the names that libtpu gives them."""

from compare.profile.join.profile import read_profile
from compare.timeline.series import CORE, MEMORY, POWER, TEMPERATURE, THROTTLE
from tests.compare.timeline.scenes import FUSION, REDUCE, timeline
from tests.compare.timeline.spaces import Space, tpu


def plane(space, device=0, watts=(100.0, 200.5)):
    core = tpu(space, device, [(FUSION, 0, 600), (REDUCE, 600, 300)], Steps=[("0", 0, 1000)])
    counters = core.line("_counters_")
    for at, value in enumerate(watts):
        counters.event("VDD Core SPI Sampler Power Meter(W)", at * 500, 0, stats={"Power": value})
    counters.event("HBM FW Power Meter PL2(W)", 250, 0, stats={"power": 15})
    counters.event("HBM FW Max Temperature(C)", 5, 0, stats={"temperature": 43})
    counters.event("VDD Core FW Throttle(%)", 7, 0, stats={"throttle": 12.5})
    counters.event("MXU Busy Cycles", 7, 0, stats={"value": 1})
    return core


def test_meters_are_read_by_name_with_their_fractions(tmp_path):
    space = Space()
    plane(space)
    meters = {meter.name: meter for meter in timeline(space, tmp_path).meters}
    assert {
        name: (meter.quantity, meter.component, meter.unit, meter.values.tolist(), meter.times_ns.tolist())
        for name, meter in meters.items()
    } == {
        "VDD Core SPI Sampler Power Meter(W)": (POWER, CORE, "W", [100.0, 200.5], [0, 500]),
        "HBM FW Power Meter PL2(W)": (POWER, MEMORY, "W", [15], [250]),
        "HBM FW Max Temperature(C)": (TEMPERATURE, MEMORY, "°C", [43], [5]),
        "VDD Core FW Throttle(%)": (THROTTLE, CORE, "%", [12.5], [7]),
    }


def test_states_of_throttling_are_shares_of_the_time(tmp_path):
    space = Space()
    line = plane(space).line("Power Throttle")
    line.event("none", 0, 600)
    line.event("PPM brake", 600, 200)
    line.event("none", 800, 200)
    read = timeline(space, tmp_path)
    shares = {meter.name: meter.mean for meter in read.meters if meter.name.startswith("Power Throttle")}
    assert shares == {"Power Throttle: none": 80, "Power Throttle: PPM brake": 20}
    assert not [note for note in read.notes if "Power Throttle" in note]


def test_devices_of_two_hosts_keep_their_meters(tmp_path):
    spaces = [Space(hostname="a"), Space(hostname="b")]
    for at, space in enumerate(spaces):
        plane(space, watts=(100.0 * (at + 1),) * 2)
    files = [space.write(tmp_path, name) for space, name in zip(spaces, "ab", strict=True)]
    meters = [meter for meter in read_profile(files, axes={}).meters if "SPI" in meter.name]
    assert [(meter.device, meter.host, meter.mean) for meter in meters] == [(0, 0, 100), (1, 1, 200)]


def test_a_profile_says_when_it_began(tmp_path):
    space = Space()
    plane(space)
    assert timeline(space, tmp_path).zero_unix_ns == 1_700_000_000_000_000_000
    for shown in space.planes:
        for line in shown.lines:
            line.timestamp_ns = 4000
    assert timeline(space, tmp_path).zero_unix_ns is None
    space.plane("Task Environment", profile_start_time=1_795_185_580_286_163_967)
    assert timeline(space, tmp_path).zero_unix_ns == 1_795_185_580_286_167_967
