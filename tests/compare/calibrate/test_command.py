"""`python -m compare.calibrate`: from windows, and on the CPU devices of this machine."""

import json
import re
import subprocess
import sys

import pytest

from compare.calibrate.windows import read_windows, write_windows
from compare.cli.calibrate import main
from compare.timeline.errors import TimingError
from meshes.devices.chip_file import read_chip
from meshes.devices.generations import GENERATIONS
from meshes.process.errors import MeshError
from tests.compare.calibrate.planted import JOULES, windows
from tests.places import ROOT


@pytest.fixture
def csv(tmp_path):
    write_windows(windows(0), tmp_path / "lab.csv")
    return tmp_path / "lab.csv"


def test_windows_become_a_file_that_power_reads(csv, capsys):
    out = csv.with_suffix(".toml")
    assert main(["--windows", str(csv), "--generation", "v5e", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("calibrated on lab\ntime, from 48 windows (95% intervals):\n")
    assert "each benchmark predicted from all others: median error 1." in said
    assert "not fitted: no window shows dcn" in said
    chip = read_chip(out, GENERATIONS["v5e"])
    assert chip.calibrated_on == "lab"
    for name in ("matrix", "static"):
        row = chip.energy[name]
        assert row.low <= JOULES[name] <= row.high
        assert (row.standing, row.source) == ("measured", "fit of 50 windows, 95% interval")
    with pytest.raises(MeshError, match="this file is of 'v5e', the chips are v6e"):
        read_chip(out, GENERATIONS["v6e"])


def test_one_document_has_what_is_printed(csv, capsys):
    assert main(["--windows", str(csv), "--out", str(csv.with_suffix(".toml")), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["energy"]["constants"]["static"]["unit"] == "W"
    assert said["time"]["not_seen"] == ["cycle_factor", "dcn_launch_s", "dcn_bytes_per_s"]
    assert len(said["time"]["leave_one_out"]["errors"]) == 48
    assert said["provenance"]["windows"] == "lab.csv"


def test_what_cannot_be_told_apart_is_exit_status_1(tmp_path, capsys):
    """ICI and DCN always go together; all else stands."""
    table = windows(0)
    table["dcn_bytes"] = table["ici_byte_hops"]
    write_windows(table, tmp_path / "both.csv")
    assert main(["--windows", str(tmp_path / "both.csv"), "--out", str(tmp_path / "both.toml")]) == 1
    assert "not fitted: the windows cannot tell ici and dcn apart" in capsys.readouterr().out
    written = (tmp_path / "both.toml").read_text()
    assert "[energy.static]" in written
    assert "[energy.ici]" not in written
    assert 'energy_not_told_apart = ["ici and dcn"]' in written


def test_windows_without_energy_give_times(tmp_path, capsys):
    write_windows(windows(0).assign(energy_j=float("nan")), tmp_path / "times.csv")
    assert main(["--windows", str(tmp_path / "times.csv"), "--out", str(tmp_path / "times.toml")]) == 0
    assert "note: energy is not fitted: no window has any" in capsys.readouterr().out


REFUSED = [
    (["--out", "here.json"], "it names a TOML file, like calibrated.toml"),
    (["--only", "matmull"], "'matmull' is no benchmark; choose from matmul, copy"),
    (["--generation", "v5e"], "--device and --generation belong to --windows"),
    (["--windows", "a.csv", "--only", "copy"], "--only belongs to a device that is measured"),
]


@pytest.mark.parametrize(("words", "line"), REFUSED)
def test_a_wrong_request_is_one_line(words, line, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert line in capsys.readouterr().err


@pytest.mark.slow
def test_on_cpu_devices_it_runs_end_to_end(tmp_path):
    """Products, copies and all-reduces on eight devices; times only, which are no device's on few cores."""
    words = ["--only", "matmul,copy,all-reduce", "--repeats", "2", "--out", str(tmp_path / "cpu.toml"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "compare.calibrate", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    assert "energy" not in said
    assert said["provenance"]["device"] == "cpu (8 devices)"
    table = read_windows(tmp_path / "cpu.windows.csv").table
    assert table["kind"].value_counts().to_dict() == {"matmul": 6, "copy": 6, "all-reduce": 12}
    product = table[table["name"] == "matmul 256"].iloc[0]
    assert product["matrix_flops"] == product["calls"] * 4 * 2 * 256**3
    sums = table[table["name"] == "all-reduce 256 KiB over all"].iloc[0]
    assert sums["link_bytes"] == sums["calls"] * 4 * 2**18 * 7 / 8
    # A core does more than 10^8 and less than 10^13 FLOP/s; a unit or a loop miscounted is further off.
    assert 1e8 < (product["matrix_flops"] / product["time_s"]) < 1e13
    with pytest.raises(MeshError, match="this file is of 'cpu', the chips are v5e"):
        read_chip(tmp_path / "cpu.toml", GENERATIONS["v5e"])


def test_the_example_of_the_docs_is_what_is_printed(tmp_path, monkeypatch, capsys):
    """docs/calibration.md works it out by hand: 80 W, 0.6 pJ/FLOP, 5 pJ/bit, 10^14 FLOP/s, 10^12 byte/s."""
    page = (ROOT / "docs/calibration.md").read_text(encoding="utf-8")
    given, printed = (
        re.search(rf"<!-- example: {name} -->\n```\w*\n(.*?)```", page, re.DOTALL)[1] for name in ("windows", "printed")
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "our-chip.csv").write_text(given)
    assert main(["--windows", "our-chip.csv", "--generation", "v5e", "--out", "our-chip.toml"]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_a_device_that_is_not_there_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "compare.calibrate", "--platform", "gpu", "--out", str(tmp_path / "none.toml")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no GPU is attached to this machine" in done.stderr
    assert not (tmp_path / "none.toml").exists()


@pytest.mark.parametrize("words", [("--platform", "cpu"), ("--devices", "8"), ("--only", "copy"), ("--repeats", "3")])
def test_what_belongs_to_a_device_is_refused_beside_windows(csv, capsys, words):
    with pytest.raises(SystemExit) as caught:
        main(["--windows", str(csv), "--out", str(csv.with_suffix(".toml")), *words])
    assert caught.value.code == 2
    assert f"{words[0]} belongs to a device that is measured, not to --windows" in capsys.readouterr().err
    assert not csv.with_suffix(".toml").exists()


def test_one_window_is_one(tmp_path):
    (tmp_path / "one.csv").write_text("name,time_s,matrix_flops\nmatmul,0.1,1e13\n")
    with pytest.raises(TimingError, match=r"1 window for 1 coefficient \(matrix_flops_per_s\): at least 2 are needed"):
        main(["--windows", str(tmp_path / "one.csv"), "--out", str(tmp_path / "one.toml")])


def fit_csv(tmp_path, capsys, text, *words):
    path = tmp_path / "lab.csv"
    path.write_text(text)
    assert main(["--windows", str(path), "--out", str(path.with_suffix(".toml")), *words]) == 0
    return " ".join(capsys.readouterr().out.split()), path.with_suffix(".toml").read_text()


def test_a_rate_whose_windows_take_no_longer_is_said(tmp_path, capsys):
    """Collectives whose seconds are those of their products: their bytes take none."""
    text = (
        "name,time_s,matrix_flops,link_bytes\nmm,.1,1e13,0\nmm2,.2,2e13,0\nmm3,.3,3e13,0\nar,.1,1e13,1e6\n"
        "ar2,.199,2e13,2e6\nar3,.299,3e13,9e6\n"
    )
    said, written = fit_csv(tmp_path, capsys, text)
    assert "not fitted: link_bytes_per_s is without bound, at least " in said
    assert "the windows take no longer for such work" in said
    assert "link_bytes_per_s" not in written
    assert main(["--windows", str(tmp_path / "lab.csv"), "--out", str(tmp_path / "lab.toml"), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["time"]["without_bound"]) == ["link_bytes_per_s"]


HAND = "name,time_s,energy_j,matrix_flops\nidle,1,80,0\nidle,2,160,0\nmm,.1,14,1e13\nmm2,.2,28,2e13\nmm3,.3,42,3e13\n"


def test_windows_of_0_joules_are_said(tmp_path, capsys):
    said, _ = fit_csv(tmp_path, capsys, HAND + "mm4,.4,0,4e13\n")
    assert "note: 1 window of 0 J, which no chip takes: they count for times only" in said
    assert "energy, from 5 windows" in said


def test_a_window_that_does_not_fit_is_named(tmp_path, capsys):
    said, written = fit_csv(tmp_path, capsys, HAND + HAND.partition("\n")[2] + "typo,.1,.14,1e13\n")
    assert "left out: window 'typo' has 0.14 J, and all others say 14" in said
    assert 'energy_left_out = ["typo"]' in written


def test_units_off_by_a_thousand_are_a_warning_by_name(tmp_path, capsys):
    """Milliseconds and millijoules: 600 pJ/FLOP; 1e13 FLOPs ÷ 100 s are 1e11 FLOP/s.  Watts are still watts."""
    lines = [line.split(",") for line in HAND.splitlines()]
    rows = [[name, f"{1e3 * float(s):g}", f"{1e3 * float(j):g}", flops] for name, s, j, flops in lines[1:]]
    text = "\n".join(",".join(row) for row in [lines[0], *rows]) + "\n"
    said, _ = fit_csv(tmp_path, capsys, text, "--generation", "v5e")
    assert "note: matrix is 600 pJ/FLOP, 7.2e+02 times the table's 0.83 of v5e: are the windows in s, J, FLOP" in said
    assert "note: matrix_flops_per_s is 1e+11 FLOP/s, 0.00051 times the data sheet's 1.97e+14 of v5e" in said
    assert "static is" not in said
    assert "of v5e" not in fit_csv(tmp_path, capsys, text)[0]  # of no chip that is known


def test_products_without_estimates_say_what_is_not_fitted(tmp_path, capsys):
    said, _ = fit_csv(tmp_path, capsys, HAND)
    assert "note: without the column estimated_s cycle_factor is not fitted, by which a report's matmuls last" in said
