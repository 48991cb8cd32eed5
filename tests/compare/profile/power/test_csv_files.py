"""CSV files of samples, as CharLLM-PPT's Zeus writes them: what they say, and what is wrong with them."""

import pytest

from compare.metrics.meters import choose_power, summarize_files
from compare.profile.power.csv_files import is_metric
from compare.profile.power.files import holds_power, read_power
from compare.timeline.errors import TimingError

BEGIN = 1_757_000_000


def write(folder, **files):
    """`gpu_power_0=[(0, 100), …]`: samples at seconds from BEGIN; text as it is."""
    for name, rows in files.items():
        lines = rows if isinstance(rows, str) else "".join(f"{BEGIN + at},{value}\n" for at, value in rows)
        (folder / f"{name}.csv").write_text(lines)
    return folder


def meters(folder, **options):
    files = read_power(folder, **options)
    return {meter.name: meter for meter in summarize_files(files).meters}, files.notes


def test_mean_peak_and_joules_are_those_of_charllm_ppt(tmp_path):
    """By hand: 100 W hold 1 s and 200 W hold 3 s, so 175 W; trapezoids 150 + 3 × 250 = 900 J; peak 300 W."""
    table, notes = meters(write(tmp_path, gpu_power_0=[(0, 100), (1, 200), (4, 300)]))
    power = table["gpu_power"]
    assert (power.mean, power.peak, power.total, power.samples) == (175, 300, 900, 3)
    assert (power.within_hosts_std, power.between_hosts_std, notes) == (None, None, ())


def test_energy_is_summed_over_devices_and_spread_is_within_and_between_hosts(tmp_path):
    """16 ranks, two hosts of 8: means of 100 and 120 W in each host by turns, 50 W more on the second."""
    files = {
        f"gpu_power_{rank}": [(0, watts := 100 + 20 * (rank % 2) + 50 * (rank // 8)), (10, watts)] for rank in range(16)
    }
    table, notes = meters(write(tmp_path, **files))
    power = table["gpu_power"]
    assert (power.devices, power.mean, power.within_hosts_std, power.between_hosts_std) == (16, 135, 10, 25)
    assert (power.total, power.lowest_device_mean, power.highest_device_mean, power.peak_device) == (21600, 100, 170, 9)
    assert notes == ("hosts are taken to have 8 ranks each; --per-host says otherwise",)
    table, notes = meters(tmp_path, per_host=16)
    assert (table["gpu_power"].between_hosts_std, notes) == (None, ())


def test_hosts_begin_at_the_ranks_that_have_files_of_their_system(tmp_path):
    files = {f"gpu_power_{rank}": [(0, rank), (1, rank)] for rank in range(4)}
    table, notes = meters(
        write(tmp_path, **files, system_cpu_temp_rank_0_id_x86=[(0, 50)], system_cpu_temp_rank_2_id_x86=[(0, 60)])
    )
    assert (table["gpu_power"].within_hosts_std, table["gpu_power"].between_hosts_std, notes) == (0.5, 1, ())
    assert table["system_cpu_temp x86"].peak == 60


def test_counters_of_32_bits_go_on_behind_their_end(tmp_path):
    table, _ = meters(write(tmp_path, pcie_rx_bytes_0=[(0, 2**32 - 100), (1, 50)]))
    assert table["pcie_rx_bytes"].total == 150


def test_a_counter_has_its_growth_and_no_mean_of_what_it_shows(tmp_path):
    near = 2**32 - 1024
    table, _ = meters(
        write(tmp_path, nvlink_rx_throughput_0=[(0, near), (1, near + 512)], nvlink_rx_throughput_1=[(0, 7), (1, 2055)])
    )
    counter = table["nvlink_rx_throughput"]
    assert (counter.total, counter.peak_device) == (512 + 2048, 1)
    assert (counter.mean, counter.peak, counter.lowest_device_mean, counter.highest_device_mean) == (None,) * 4
    assert (counter.within_hosts_std, counter.between_hosts_std) == (None, None)


def test_samples_that_failed_are_left_out_and_said(tmp_path):
    table, notes = meters(write(tmp_path, gpu_power_0=[(0, 100), (1, -1), (2, 300)], gpu_thermal_0=[(0, -1)]))
    assert (table["gpu_power"].mean, table["gpu_power"].total, table["gpu_power"].failed) == (100, 400, 1)
    assert list(table) == ["gpu_power"]
    assert notes == (
        "gpu_power_0.csv: 1 of 3 samples failed (−1): left out, their neighbours are joined",
        "gpu_thermal_0.csv: 1 of 1 samples failed (−1): left out, their neighbours are joined",
        "gpu_thermal_0.csv: no sample is left",
    )


def test_samples_out_of_order_are_sorted_and_nothing_is_lost(tmp_path):
    table, notes = meters(write(tmp_path, gpu_power_0=[(4, 300), (0, 100), (1, 200)]))
    assert (table["gpu_power"].mean, table["gpu_power"].total) == (175, 900)
    assert notes == ("gpu_power_0.csv: its samples are out of order: sorted by time",)


def test_empty_and_torn_files_are_notes(tmp_path):
    text = f"time,value\n{BEGIN},100\n{BEGIN + 1},nan\nnonsense\n{BEGIN + 2},100,more\n{BEGIN + 3},300"
    table, notes = meters(write(tmp_path, gpu_power_0=text, gpu_power_1="", gpu_power_2="\0\1\2"))
    assert (table["gpu_power"].samples, table["gpu_power"].devices) == (3, 1)
    assert notes == (
        "gpu_power_0.csv: 2 of 6 lines are not time,value: left out",
        "gpu_power_1.csv: it is empty",
        "gpu_power_2.csv: no lines of time,value",
    )


def test_files_without_any_sample_are_one_line(tmp_path):
    with pytest.raises(TimingError, match=r"no samples in 1 CSV files; gpu_power_0.csv: it is empty"):
        read_power(write(tmp_path, gpu_power_0=""))
    with pytest.raises(TimingError, match=r"no measured power; a log of Zeus begins with start_time"):
        read_power(write(tmp_path, something="1,2\n") / "something.csv")


def test_a_folder_or_a_file_is_known_by_its_name(tmp_path):
    write(tmp_path, gpu_power_0=[(0, 1)], run7_sm_clock_12=[(0, 1)], notes="hello")
    assert holds_power(tmp_path)
    assert [is_metric(tmp_path / name) for name in ("run7_sm_clock_12.csv", "notes.csv", "gpu_power.csv")] == [
        True,
        False,
        False,
    ]


def test_the_board_s_power_is_a_device_s_and_that_of_its_memory_is_a_part_of_it(tmp_path):
    files = read_power(write(tmp_path, gpu_power_0=[(0, 300), (1, 300)], mem_power_0=[(0, 50), (1, 50)]))
    assert choose_power(files.series)[0].values.tolist() == [300, 300]
