"""`python -m compare.trace`: anybody's profile in, where its steps' time goes out, or one line that says why not."""

import gzip
import json

import pytest

from compare.cli.trace import main
from compare.render.time.profile_summary import _step_bars
from compare.report.model.timing import Times
from meshes.process.command_line import run_command
from tests.commands import check_refusal, run_here
from tests.compare.timeline.scenes import FUSION, PROGRAM, REDUCE
from tests.compare.timeline.spaces import Space, tpu


def make_profile(devices=4):
    """A step of 1 ms: 600 µs of compute, then an all-reduce over `tensor` of 300 µs, none of it hidden."""
    space = Space()
    for device in range(devices):
        tpu(space, device, [(FUSION, 0, 600_000), (REDUCE, 600_000, 300_000)], Steps=[("0", 0, 1_000_000)])
    return space


def test_json_is_the_means_of_one_device_and_step(tmp_path, capsys):
    path = make_profile().write(tmp_path)
    assert main([str(path), "--axes", "data=2,tensor=2", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == ""
    total = {
        "step_ns": 1_000_000,
        "communication_ns": 300_000,
        "exposed_ns": 300_000,
        "hidden_ns": 0,
        "wait_ns": None,
        "compute_ns": 600_000,
        "communication_fraction": 0.3,
        "overlap": 0,
    }
    each = total | {"executions": 1, "payload_bytes": 4000}
    assert document["per_step"] == total | {"by_axes": {"tensor": each}, "by_kind": {"all-reduce": each}}
    assert (document["source"], document["devices"], document["steps"], document["unjoined_events"]) == (
        "measured",
        4,
        1,
        0,
    )


def test_the_page_says_where_the_time_goes(tmp_path, capsys):
    make_profile().write(tmp_path)
    assert main([str(tmp_path), "--mesh", "dp2tp2"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "measured on 4 TPU devices (TPU v5 lite)"
    assert "communication 300 µs (30 %)" in " ".join(lines[1:3])
    assert lines[4].startswith("compute 600 µs 60 % █")
    assert lines[5].startswith("exposed communication 300 µs 30 % █")
    assert lines[6].startswith("idle 100 µs 10 % █")
    assert "tp all-reduce 1 × 4.00 kB 300 µs 300 µs 0 s –" in lines


def test_without_axes_a_hint_says_how_to_name_them(tmp_path, capsys):
    make_profile().write(tmp_path)
    main([str(tmp_path), "--json"])
    printed = capsys.readouterr()
    assert list(json.loads(printed.out)["per_step"]["by_axes"]) == ["?"]
    assert "--axes" in printed.err
    assert len(printed.err.splitlines()) == 1


def test_shares_stand_in_one_column(tmp_path, capsys):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 600_000), (REDUCE, 600_000, 3_750)], Steps=[("0", 0, 1_000_000)])
    space.write(tmp_path)
    main([str(tmp_path), "--axes", "data=2,tensor=2"])
    spent = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")][:3]
    assert [line.split("%")[0].split()[-2:] for line in spent] == [["µs", "60"], ["µs", "0.375"], ["µs", "39.6"]]
    assert len({line.index("%") for line in spent}) == 1


def test_what_rounding_leaves_of_a_step_is_no_share():
    """A sum of parts may miss the step by the last digit of a float."""
    full = Times(
        step_ns=100.0,
        communication_ns=40.0,
        compute_ns=60.0,
        exposed_ns=40.0 - 1e-14,
        hidden_ns=0.0,
        wait_ns=None,
        communication_fraction=None,
        overlap=None,
    )
    *_, idle = _step_bars(full)
    assert idle.plain.split() == ["idle", "0", "s", "0", "%"]


def test_the_program_can_be_handed_in(tmp_path, capsys):
    space = Space()
    tpu(space, 0, [("begun", 0, 1), ("over", 4, 1)], Steps=[("0", 0, 10)])
    (tmp_path / "m.hlo.gz").write_bytes(gzip.compress(PROGRAM.encode(), mtime=0))
    space.write(tmp_path)
    words = [str(tmp_path), "--axes", "data=2,tensor=2", "--hlo", str(tmp_path / "m.hlo.gz"), "--json"]
    assert main(words) == 0
    document = json.loads(capsys.readouterr().out)["per_step"]["by_axes"]
    assert document["tensor"]["communication_ns"] == 5


def test_a_cut_file_is_told_with_what_could_be_read(tmp_path, capsys):
    path = make_profile().write(tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    assert main([str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["devices"] == 3
    assert any("cut at byte" in note and "'/device:TPU:3'" in note for note in document["notes"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "No such file"),
        (["empty"], "no profile in this folder"),
        (["sessions"], "/sessions/plugins/profile/a, "),
        (["text.pb"], "no profile of XLA"),
        (["traces"], "the file is empty"),
        (["gpu.pb"], "a profile of GPUs"),
        (["good.pb", "--axes", "data=2"], "make 2 devices; the profile shows 4"),
        (["good.pb", "--mesh", "tp2"], "the axes tp=2 make 2 devices; the profile shows 4"),
        (["good.pb", "--axes", "data"], "cannot read the axes"),
        (["good.pb", "--hlo", "text.pb"], "not HLO text"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(tmp_path, words, complaint):
    for session in ("a", "b"):
        folder = tmp_path / "sessions" / "plugins" / "profile" / session
        folder.mkdir(parents=True)
        (folder / "h.xplane.pb").write_bytes(make_profile().serialized())
    (tmp_path / "empty").mkdir()
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "h.trace.json.gz").write_bytes(b"")
    (tmp_path / "text.pb").write_text("hello")
    (tmp_path / "good.pb").write_bytes(make_profile().serialized())
    gpu = Space()
    gpu.plane("/device:GPU:0").line("Stream #1").event("nccl", 0, 5)
    (tmp_path / "gpu.pb").write_bytes(gpu.serialized())
    files = [str(tmp_path / word) if (tmp_path / word).exists() or word == "nowhere" else word for word in words]
    check_refusal(run_here("trace", *files), complaint)


def test_power_and_heat_are_said_where_they_are_measured_and_else_that_they_are_not(tmp_path, capsys):
    """4 devices of 120 W for 1 ms: 0.48 J; of a core's rail 50 mJ + 25 mJ each."""
    space = Space()
    for device in range(4):
        ops = [
            (FUSION, 0, 600_000, {"stats": {"vdd_energy_j": 0.05}}),
            (REDUCE, 600_000, 300_000, {"stats": {"vdd_energy_j": 0.025}}),
        ]
        counters = tpu(space, device, ops, Steps=[("0", 0, 1_000_000)]).line("_counters_")
        for at in (0, 500_000, 1_000_000):
            counters.event("VDD Core SPI Sampler Power Meter(W)", at, 0, stats={"Power": 100.0})
            counters.event("HBM SPI Sampler Power Meter(W)", at, 0, stats={"Power": 20.0})
    path = space.write(tmp_path)
    assert main([str(path), "--mesh", "dp2tp2", "--json"]) == 0
    meters, operations = json.loads(capsys.readouterr().out)["power"]["steps"]
    assert (meters["energy_j"], meters["mean_w"], meters["by_part_j"]["idle"]) == (0.48, 120, 0.048)
    assert meters["by_axes_j"] == {"tp": 0.144}
    assert (operations["energy_j"], operations["by_axes_j"]) == (0.3, {"tp": 0.1})
    assert main([str(path), "--mesh", "dp2tp2"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "measured: a step takes 480 mJ on 4 devices, 120 W each, at most 120 W in 1 ms" in words
    assert "heat: not measured" in words
    main([str(make_profile().write(tmp_path, "other")), "--mesh", "dp2tp2"])
    assert "power and heat: not measured" in capsys.readouterr().out


def test_samples_of_another_tool_are_joined_by_the_wall_clock(tmp_path, capsys):
    path = make_profile().write(tmp_path)
    for rank in range(4):
        (tmp_path / f"gpu_power_{rank}.csv").write_text("1699999999.5,100\n1700000000.5,100\n")
    main([str(path), "--mesh", "dp2tp2", "--measured-power", str(tmp_path), "--json"])
    said = capsys.readouterr()
    power = json.loads(said.out)["power"]
    assert "--power" not in said.err
    main([str(path), "--mesh", "dp2tp2", "--power", str(tmp_path), "--json"])  # its earlier name
    again = capsys.readouterr()
    assert again.out == said.out
    assert f"note: --power is --measured-power now: write --measured-power {tmp_path}\n" in again.err
    assert power["steps"][0]["energy_j"] == pytest.approx(0.4)
    assert "less often than once a step" in power["notes"][0]


@pytest.mark.parametrize("columns", ["80", "100", "140"])
def test_a_counter_among_the_meters_leaves_them_their_names_and_sums(tmp_path, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for name, first, last in (
        ("gpu_power", 100, 100),
        ("gpu_thermal", 40, 60),
        ("system_memory_used", 6e11, 6e11),
        ("nvlink_rx_throughput", 2**32 - 2048, 2**32 - 1024),
    ):
        (tmp_path / f"{name}_0.csv").write_text(f"1699999999.5,{first}\n1700000000.5,{last}\n")
    assert main([str(tmp_path)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(line.startswith("meter devices mean") for line in lines)
    assert "gpu_power 1 100 W 100 W 100 100 – – 100 J" in lines
    assert [line for line in lines if line.endswith("1 – – – – – – 1.05 MB")]  # 1,024 KiB


def test_measured_power_alone_is_a_page_of_its_own(tmp_path, capsys):
    (tmp_path / "gpu_power_0.csv").write_text("1699999999.5,100\n1700000000.5,100\n")
    (tmp_path / "energy.csv").write_text(
        "start_time,window_name,elapsed_time,gpu0_energy\n1699999999.5,prefill,2.0,300.0\n"
    )
    assert main([str(tmp_path)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "gpu_power 1 100 W 100 W 100 100 – – 100 J mean: each sample holds until the next" in words
    assert "another mean × time. heat: not measured" in words
    assert main([str(tmp_path / "energy.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["power"]["windows"][0]["mean_w"] == 150


def offloading():
    """Two steps of 1 ms: 900 µs wait for a copy from the host (`S(5)`), 50 µs compute; then one sum of 8 of 10 µs."""
    target = "f32[1000]{0:T(1024)}"
    begun = f"({target}, f32[1000]{{0:T(1024)S(5)}}, u32[]{{:S(2)}})"
    ops = []
    for begin in (0, 1_000_000):
        ops += [
            (f"%copy-start.3 = {begun} copy-start(f32[1000]{{0:T(1024)S(5)}} %p)", begin, 0),
            (f"%copy-done.3 = {target} copy-done({begun} %copy-start.3)", begin, 900_000),
            (FUSION, begin + 900_000, 50_000),
        ]
    runs = [("jit_step(17)", 0, 1_000_000), ("jit_step(17)", 1_000_000, 1_000_000), ("jit_psum(18)", 2_000_000, 10_000)]
    space = Space()
    for device in range(4):
        tpu(space, device, [*ops, (REDUCE, 2_001_000, 8_000)], XLA_Modules=runs)
    return space


def test_the_headline_names_what_dominates_with_the_operation(tmp_path, capsys):
    offloading().write(tmp_path)
    main([str(tmp_path), "--axes", "data=2,tensor=2"])
    words = " ".join(capsys.readouterr().out.split())
    assert (
        "a step takes 1.00 ms, mean over 2 steps on 4 devices: 90 % waits for local copies, 900 µs of it in " in words
    )
    assert "in copy-done.3 (host → HBM); it does not communicate." in words
    assert "compute 50.0 µs 5 % █" in words
    assert "waiting for local copies 900 µs 90 % █" in words
    assert "idle 50.0 µs 5 % █" in words


def test_what_another_program_communicates_is_never_missing(tmp_path, capsys):
    offloading().write(tmp_path)
    main([str(tmp_path), "--axes", "data=2,tensor=2"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "4 all-reduces, 32.0 µs, in jit_psum, on 4 devices together" in lines
    assert "jit_step 2 × 2.00 ms 99.5 % 100 µs 1.80 ms 0 s 100 µs" in lines
    assert "jit_psum 1 × 10.0 µs 0.50 % 0 s 0 s 8.00 µs 2.00 µs" in lines
    assert not any(line.startswith("tensor all-reduce 0 ×") for line in lines)


def test_a_program_can_be_chosen(tmp_path, capsys):
    path = offloading().write(tmp_path)
    main([str(path), "--axes", "data=2,tensor=2", "--program", "jit_psum", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (document["steps"], document["per_step"]["step_ns"], document["per_step"]["exposed_ns"]) == (
        1,
        10_000,
        8_000,
    )
    assert [program["program"] for program in document["programs"]] == ["jit_psum(18)"]
    main([str(path), "--json"])
    programs = json.loads(capsys.readouterr().out)["programs"]
    assert [program["program"] for program in programs] == ["jit_step(17)", "jit_psum(18)"]
    assert programs[0]["per_execution"]["copy_wait_ns"] == 900_000


def test_a_program_that_is_not_there_is_one_line_that_names_those_that_are(tmp_path, capsys):
    path = offloading().write(tmp_path)
    with pytest.raises(SystemExit) as caught:
        run_command(main, [str(path), "--program", "jit_train"])
    printed = capsys.readouterr()
    assert (caught.value.code, printed.out) == (2, "")
    assert printed.err.endswith("the profile has no program 'jit_train'; name one of: jit_step, jit_psum\n")
