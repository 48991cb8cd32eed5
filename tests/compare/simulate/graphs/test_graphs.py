"""`compare.simulate FOLDER` and `RUN --as astra-sim`: step times of whole programs, by the command line."""

import gzip
import json

import pytest

from compare.cli.export import main as export
from compare.cli.simulate import main
from tests.compare.chakra.files import collective, compute, node, write_trace
from tests.compare.simulate.asking import answer, refuse
from tests.places import EXAMPLE, copy_example

RAN = {
    "jax/decode/tpu": (19_745_889_368, 569_006_368),
    "jax/prefill/tpu": (260_609_157_227, 120_891_857_227),
    "torchxla/decode/tpu": (35_691_023_208, 15_025_241_208),
    "torchxla/prefill/tpu": (472_528_616_067, 168_479_160_067),
}
"""Cycles of 1 ps and exposed ones, of all eight ranks, as the real ASTRA-sim printed them for these exports."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    place = tmp_path_factory.mktemp("export") / "traces"
    assert export([str(EXAMPLE), "--to", "chakra", "--cell", "tpu", "--out", str(place)]) == 0
    return place


@pytest.mark.slow
def test_a_run_has_the_cycles_of_the_real_program():
    programs = answer(EXAMPLE, "--as", "astra-sim", "--cell", "tpu")["programs"]
    assert {each["program"]: (each["cycles"], each["exposed"]) for each in programs} == RAN
    assert {each["tick_ps"] for each in programs} == {1}
    assert all(each["ranks"] == [[each["cycles"], each["exposed"]]] * 8 for each in programs)


@pytest.mark.slow
def test_its_exports_have_the_same(traces):
    for folder in sorted(traces.iterdir()):
        if folder.is_dir():
            found = answer(folder, "--as", "astra-sim")
            assert (found["cycles"], found["exposed"]) in RAN.values()


def test_what_is_printed(capsys):
    words = [str(EXAMPLE), "--as", "astra-sim", "--arm", "jax", "--phase", "decode", "--cell", "tpu"]
    assert main(words) == 0
    assert capsys.readouterr().out == (
        "19,745,889,368 cycles of 1 ps, 569,006,368 of them exposed (19,745.9 µs, 569.0 µs): jax/decode/tpu, 8 ranks "
        "by ASTRA-sim's rules (congestion-unaware)\n"
        "machine: ring of 2 (37.3 GB/s, 465.67 ns) × ring of 4 (37.3 GB/s, 465.67 ns)\n"
    )


@pytest.mark.slow
def test_a_calibrated_run_and_its_export_agree_and_the_line_says_so(capsys, tmp_path):
    """Bytes take twice as long: 1.5 to 2 times the exposed time, the rest is latency."""
    run = copy_example(tmp_path / "run", "jax/prefill/tpu")
    (run / "chip.toml").write_text(
        'generation = "v5e"\ncalibrated-on = "our pod, June"\n'
        '[time.link_bytes_per_s]\nvalue = 18.6515e9\nunit = "byte/s"\n'
        '[time.memory_bytes_per_s]\nvalue = 2e11\nunit = "byte/s"\n'
    )
    (by_run,) = answer(run, "--as", "astra-sim")["programs"]
    cycles, exposed = RAN["jax/prefill/tpu"]
    assert 1.5 * exposed < by_run["exposed"] < 2 * exposed
    assert by_run["cycles"] - by_run["exposed"] > 1.02 * (cycles - exposed)
    assert export([str(run), "--to", "chakra", "--out", str(tmp_path / "traces")]) == 0
    (folder,) = (tmp_path / "traces").glob("*-jax-prefill-tpu")
    assert answer(folder, "--as", "astra-sim")["ranks"] == by_run["ranks"]
    capsys.readouterr()
    main([str(run), "--as", "astra-sim"])
    assert capsys.readouterr().out.splitlines()[1] == (
        "machine: ring of 2 (18.65 GB/s, 465.67 ns) × ring of 4 (18.65 GB/s, 465.67 ns); "
        "compute calibrated on our pod, June"
    )
    (run / "chip.toml").rename(tmp_path / "ours.toml")
    (given,) = answer(run, "--as", "astra-sim", "--chip", str(tmp_path / "ours.toml"))["programs"]
    assert given == by_run
    (tmp_path / "ours.toml").rename(run / "chip.toml")
    (other,) = answer(run, "--as", "astra-sim", "--machine", "v6e:2x4")["programs"]
    (usual,) = answer(
        EXAMPLE,
        "--as",
        "astra-sim",
        "--machine",
        "v6e:2x4",
        "--arm",
        "jax",
        "--phase",
        "prefill",
        "--cell",
        "tpu",
    )["programs"]
    assert other["exposed"] == pytest.approx(usual["exposed"], rel=1e-6)  # computation ends within its tick


def test_on_another_machine_the_export_and_the_run_agree(traces):
    (folder,) = traces.glob("*-jax-prefill-tpu")
    words = ["--arm", "jax", "--phase", "prefill", "--cell", "tpu"]
    (by_run,) = answer(EXAMPLE, "--as", "astra-sim", "--machine", "v6e:2x4", *words)["programs"]
    by_trace = answer(folder, "--as", "astra-sim", "--machine", "v6e:2x4")
    assert by_trace["ranks"] == by_run["ranks"]
    assert by_trace["cycles"] < RAN["jax/prefill/tpu"][0]


def test_without_a_simulator_named_our_own_engine_plays_a_trace(traces):
    (folder,) = traces.glob("*-jax-decode-tpu")
    found = answer(folder)
    assert found["model"] == "native"
    # Rings without launches: 0.1 % off ASTRA-sim, whose rings send the same bytes in as many steps.
    assert found["ns"] == pytest.approx(19_745_889, rel=2e-3)
    assert len(found["ranks"]) == 8


def test_a_trace_of_others_needs_a_machine(tmp_path):
    write_trace(tmp_path, [[compute(1, 5), collective(2, 0, 1 << 20, deps=[1])]] * 8)
    assert "network.yml" in refuse(tmp_path, "--as", "astra-sim")
    machine = tmp_path / "machine.toml"
    machine.write_text('memory = 2765\n[[dims]]\nkind = "ring"\nsize = 8\nbandwidth = 96.636764160\nlatency = 1000\n')
    # 5 us, then an all-reduce of 1 MiB over 8 ranks: 34,121 (docs/network.md).
    assert answer(tmp_path, "--as", "astra-sim", "--machine", machine)["cycles"] == 5_000 + 34_121


def test_what_astra_sim_stops_at_is_refused_and_our_engine_says_what_it_takes_for_nothing(capsys, tmp_path):
    write_trace(tmp_path, [[node(1, 1), compute(2, 5, deps=[1])]] * 2)
    machine = tmp_path / "two.toml"
    machine.write_text('[[dims]]\nkind = "ring"\nsize = 2\nbandwidth = 1\nlatency = 1\n')
    assert "rank 0, node 1 'n1' and 1 more: a METADATA_NODE, at which ASTRA-sim aborts" in refuse(
        tmp_path, "--as", "astra-sim", "--machine", machine
    )
    assert main([str(tmp_path), "--machine", str(machine)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("5,000.0 ns: w, 2 ranks, our own model")
    assert "note: rank 0, node 1 'n1' and 1 more: a METADATA_NODE takes no time here" in printed.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--aware"], "--aware belongs to --as astra-sim"),
        (["--arm", "jax"], "--framework, --phase and --variant belong to a run folder"),
        (["--as", "ns3"], "invalid choice: 'ns3'"),
        (["--as", "astra-sim", "--machine", "v6e:4x4"], "v6e:4x4: its dims multiply to 16 ranks, and "),
        (["--as", "astra-sim", "--aware"], "congestion-aware ASTRA-sim has one dim"),
    ],
)
def test_a_wrong_request_is_one_line(traces, words, problem):
    (folder,) = traces.glob("*-jax-decode-tpu")
    assert problem in refuse(folder, *words)


def test_a_run_without_such_a_program():
    assert "has no program nobody/*/* that was compiled for TPUs" in refuse(
        EXAMPLE, "--as", "astra-sim", "--arm", "nobody"
    )


def test_a_damaged_trace_names_its_file(tmp_path):
    write_trace(tmp_path, [[compute(1, 5)]] * 2)
    path = tmp_path / "w.1.et"
    path.write_bytes(path.read_bytes()[:-3])
    assert "w.1.et is cut" in refuse(tmp_path, "--as", "astra-sim")


def test_exposed_time_and_the_timeline_of_a_trace(capsys, tmp_path):
    """1 byte a ns, 1 ns a hop: an all-reduce of 600 bytes over two ranks takes 2·(1 + 300) = 602 ns.  The first runs
    beside 1 us of compute, the second behind it."""
    write_trace(tmp_path, [[collective(2, 0, 600), compute(3, 1), collective(4, 0, 600, deps=[2, 3])]] * 2)
    machine = tmp_path / "two.toml"
    machine.write_text('[[dims]]\nkind = "ring"\nsize = 2\nbandwidth = 1\nlatency = 1\n')
    found = answer(tmp_path, "--machine", machine)
    assert found["ns"] == 1_000 + 602
    assert found["exposed_by_kind_ns"] == {"all-reduce": 602}
    out = tmp_path / "timeline.json.gz"
    assert main([str(tmp_path), "--machine", str(machine), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "exposed communication, mean over ranks: 602 ns (all-reduce 602 ns)" in printed
    assert printed.splitlines()[-1] == str(out)
    trace = json.loads(gzip.decompress(out.read_bytes()))
    assert trace["otherData"]["w trace 2 ranks"] == ("simulated on two, not measured; device 0 stands for 0, 1")
    slices = {(row["ts"], row["dur"], row["name"].split()[0]) for row in trace["traceEvents"] if row["ph"] == "X"}
    assert slices >= {(0, 1.602, "trace"), (0, 1, "n3"), (0, 0.602, "all-reduce"), (1, 0.602, "all-reduce")}


def test_a_deadlock_of_a_trace_names_the_folder_ranks_and_nodes_and_writes_nothing(tmp_path):
    groups = {"1": [0, 1], "2": [0, 1]}
    orders = [("1", "2"), ("2", "1")]
    write_trace(
        tmp_path,
        [[collective(1, 0, 64, group=a), collective(2, 0, 64, group=b, deps=[1])] for a, b in orders],
        groups=groups,
    )
    machine, out = tmp_path / "two.toml", tmp_path / "timeline.json.gz"
    machine.write_text('[[dims]]\nkind = "ring"\nsize = 2\nbandwidth = 1\nlatency = 1\n')
    assert refuse(tmp_path, "--machine", machine, "--out", out) == (
        f"error: {tmp_path}: deadlock: rank 0 waits at node 1 (n1) for rank 1, rank 1 waits at node 1 (n1) for rank 0; "
        "they come to their transfers in crossed order\n"
    )
    assert not out.exists()
