"""Windows of Zeus, as its `ZeusMonitor` writes them."""

import json

import pytest

from compare.metrics.meters import summarize_windows
from compare.profile.power.files import holds_power, read_power
from compare.timeline.errors import TimingError

LOG = """start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy
1757000000.5,prefill,2.0,200.0,400.0
1757000003.0,decode, step 1,0.5,50.0,50.0
1757000004.0,prefill,4.0,400.0,800.0
"""


def test_a_log_is_windows_by_name(tmp_path):
    (tmp_path / "energy.csv").write_text(LOG)
    files = read_power(tmp_path / "energy.csv")
    prefill, decode = summarize_windows(files.windows)
    assert (prefill.name, prefill.windows, prefill.mean_s, prefill.energy_j, prefill.devices) == (
        "prefill",
        2,
        3,
        900,
        2,
    )
    # 1,800 J of two devices in 6 s; one takes 100 W and the other 200.
    assert (prefill.mean_w, prefill.device_std_w, prefill.host_energy_j) == (150, 50, None)
    assert (decode.name, decode.mean_w) == ("decode, step 1", 100)
    assert holds_power(tmp_path / "energy.csv")


def test_lines_that_are_no_windows_are_left_out_and_said(tmp_path):
    (tmp_path / "energy.csv").write_text(f"{LOG}1757000009.0,torn\n1757000010.0,short,0.01,0.0,1.0\n")
    files = read_power(tmp_path / "energy.csv")
    assert len(files.windows) == 3
    assert files.notes == (
        "energy.csv: 1 of 5 lines are no windows: left out",
        "energy.csv: 1 of 4 windows show no joules of a device (Zeus: the window is shorter than its counter's update "
        "period): left out",
    )


def test_measurements_are_read_as_json(tmp_path):
    one = {
        "time": 2.0,
        "gpu_energy": {"0": 100.0, "1": 300.0},
        "cpu_energy": {"0": 40.0},
        "dram_energy": None,
        "soc_energy": None,
        "total_energy": 400.0,
    }
    for name, value in {"one": one, "many": [one, one], "named": {"a": one, "b": one}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
        assert holds_power(tmp_path / f"{name}.json")
    row = summarize_windows(read_power(tmp_path / "one.json").windows)[0]
    assert (row.name, row.energy_j, row.mean_w, row.device_std_w, row.host_energy_j) == ("one", 400, 100, 50, 40)
    assert [window.name for window in read_power(tmp_path / "many.json").windows] == ["many 0", "many 1"]
    assert [window.name for window in read_power(tmp_path / "named.json").windows] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ('{"traceEvents": []}', "no Measurement of Zeus"),
        ('{"time": 1, "gpu_energy": {"a": 1}}', "gpu_energy of bad is {'a': 1}; joules by the number"),
        (f'{{"time": 1, "gpu_energy": {{"{"9" * 5000}": 1}}}}', "gpu_energy of bad is .*; joules by the number"),
        ('{"time": "1", "gpu_energy": {"0": 1}}', "time of bad is '1', not seconds"),
        ('{"time": 1, "gpu_energy": {"0": 0}}', "no window with joules"),
    ],
)
def test_bad_measurements_are_one_line(tmp_path, text, complaint):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(TimingError, match=complaint):
        read_power(tmp_path / "bad.json")


def test_a_log_without_windows_is_one_line(tmp_path):
    (tmp_path / "energy.csv").write_text(LOG.splitlines()[0])
    with pytest.raises(TimingError, match="no window with joules"):
        read_power(tmp_path / "energy.csv")
