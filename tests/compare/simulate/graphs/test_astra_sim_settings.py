"""What stands beside a trace, in ASTRA-sim's cycles, by the command line: numbers of the real program, or one line."""

import json

import pytest

from compare.cli.simulate import main
from tests.compare.chakra.files import (
    attribute,
    collective,
    compute,
    cpu,
    flops,
    invalid,
    node,
    receive,
    remote,
    send,
    write_file,
    write_trace,
)
from tests.compare.chakra.wire import BOOL, INT64
from tests.compare.simulate.asking import answer, refuse

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
MIB = 1 << 20


def folder(place, nodes, *, ranks=None, bandwidth=90, latency=1000, run=None, memory=None, **system):
    """A ring; words of the system file have _ for -, and are left out where `None`."""
    write_trace(place, nodes)
    (place / "network.yml").write_text(
        f"topology: [ Ring ]\nnpus_count: [ {len(nodes)} ]\nbandwidth: [ {bandwidth} ]\nlatency: [ {latency} ]\n"
    )
    table = {"scheduling-policy": "FIFO", "preferred-dataset-splits": 1, "local-mem-bw": 2765}
    table |= {f"{kind}-implementation": ["ring"] for kind in KINDS}
    table |= {word.replace("_", "-"): value for word, value in system.items()}
    (place / "system.json").write_text(json.dumps({word: value for word, value in table.items() if value is not None}))
    if run is not None:
        (place / "run.txt").write_text(run)
    if memory is not None:
        (place / "memory.json").write_text(json.dumps(memory))
    return place


def test_a_collective_of_ones_own_files(capsys, tmp_path):
    """The ring of 8 ranks that ASTRA-sim ships: 14 messages of 128 KiB, each of 500 + 131,072 / 53.687 ns in whole
    ones, 2,941, and behind the first seven a reduction of 7 us: 41,174 + 49,000."""
    (tmp_path / "own").mkdir()
    for rank in range(8):
        words, last = [], ()
        for step in range(14):
            words.append(send(len(words), (rank + 1) % 8, 0, 131_072, deps=last))
            words.append(receive(len(words), (rank - 1) % 8, 0, 131_072, deps=(len(words) - 1,)))
            if step < 7:
                words.append(compute(len(words), 7, deps=(len(words) - 1,)))
            last = (len(words) - 1,)
        write_file(tmp_path / "own" / f"ring.{rank}.et", words)
    others = {f"{kind.replace('-', '_')}_implementation": None for kind in KINDS}
    place = folder(
        tmp_path,
        [[collective(1, 0, MIB)]] * 8,
        bandwidth=50,
        latency=500,
        **others,
        all_reduce_implementation_custom=["own/ring"],
    )
    assert answer(place, "--as", "astra-sim")["cycles"] == 90_174
    assert answer(place, "--as", "astra-sim", "--aware")["cycles"] == 90_174
    assert main([str(place)]) == 0
    assert "system.json has no algorithm of all-reduce that our own engine simulates: rings" in capsys.readouterr().err
    table = json.loads((place / "system.json").read_text())
    (place / "system.json").write_text(json.dumps(table | {"preferred-dataset-splits": 2}))
    assert "ASTRA-sim waits for 2; write preferred-dataset-splits 1" in refuse(place, "--as", "astra-sim")


def test_a_run_line_of_the_congestion_aware_program_is_aware(tmp_path):
    """A message over two hops of 1,000 ns, 10,850 ns for its bytes: once, or on each of the links."""
    nodes = [[send(1, 2, 0, MIB)], [compute(1, 1)], [receive(1, 0, 0, MIB)], [compute(1, 1)]]
    place = folder(tmp_path, nodes)
    assert answer(place, "--as", "astra-sim")["cycles"] == 12_850
    (place / "run.txt").write_text("AstraSim_Analytical_Congestion_Aware --num-queues-per-dim=1\n")
    assert answer(place, "--as", "astra-sim")["cycles"] == 2 * 11_850


def test_a_rendezvous_waits_for_its_receiver_in_our_engine_too(tmp_path):
    """1 MiB over a hop of 1,000 ns at 90·2^30 bytes a second to a receiver that comes at 30,000; 10 ns at each end."""
    place = folder(tmp_path, [[send(1, 1, 0, MIB)], [compute(1, 30), receive(2, 0, 0, MIB, deps=[1])]])
    assert answer(place)["ns"] == 30_000
    (place / "run.txt").write_text("x --rendezvous-protocol=true\n")
    assert answer(place)["ns"] == pytest.approx(30_000 + 1_000 + MIB / (90 * 2**30 / 1e9) + 20, abs=0.01)


REFUSED = [
    ([[collective(1, 2, 64)]] * 2, {"all_gather_implementation": None},
     "system.json: all-gather-implementation is not there, and the trace has one"),
    ([[compute(1, 1)]] * 2, {"roofline_enabled": 1, "peak_perf": 1},
     "node 1 (n1): without num_ops and tensor_size, which the roofline of ASTRA-sim needs"),
    ([[remote(1, 64), compute(2, 1)]] * 2, {}, "rank 0, node 1 'n1': memory.json has no remote memory"),
    ([[node(1, 2), compute(2, 1)]] * 2, {}, "a MEM_LOAD_NODE without tensor_size, at which ASTRA-sim aborts"),
    ([[cpu(1, 1), send(2, 1, 0, 64, deps=[1])], [receive(1, 0, 0, 64)]], {},
     "rank 0, node 2 'n2' is the last of a rank with work of the CPU, accesses to memory or INVALID nodes: ASTRA-sim"),
    ([[node(1, 7, attributes=[attribute("is_cpu_op", BOOL, 1), attribute("comm_type", INT64, 0)]), compute(2, 1)]] * 2,
     {}, "a COMM_COLL_NODE of the CPU, which is not simulated"),
    ([[invalid(1)]] * 2, {}, "rank 0 has nothing that takes time, at which ASTRA-sim aborts"),
    ([[remote(1, 64)]] * 2, {"memory": {"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 1,
                                        "num-nodes": 1, "num-npus-per-node": 2}},
     "rank 0, node 1 'n1' is the last of its rank: behind it ASTRA-sim reads memory that it has freed"),
    ([[remote(1, 64)]] * 2, {"memory": {"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 1}},
     "memory.json: 1 nodes of 1 ranks, and the trace has 2"),
    ([[remote(1, 64)]] * 2, {"memory": {"memory-type": "SHELF"}}, "memory-type: NO_MEMORY_EXPANSION, PER_NPU"),
    ([[remote(1, 64)]] * 2, {"memory": {"memory-type": "MEMORY_POOL", "remote-mem-bw": 0.5}}, "remote-mem-bw"),
    ([[flops(1, 0, 64)]] * 2, {"roofline_enabled": 1, "peak_perf": 1}, "the roofline needs num_ops and tensor_size"),
    ([[compute(1, 1)]] * 2, {"run": "x --topology=t"}, "run.txt: --topology: not simulated"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "settings", "problem"), REFUSED, ids=[problem for *_, problem in REFUSED])
def test_what_astra_sim_does_not_play_to_its_end_is_one_line(tmp_path, nodes, settings, problem):
    assert problem in refuse(folder(tmp_path, nodes, **settings), "--as", "astra-sim")


def test_the_host_in_our_engine_is_a_second_core_that_hides_nothing(tmp_path):
    """2 us of the CPU and, behind 1 us of the device, an all-reduce of 96,637 bytes over two ranks: 2·(1,000 + 500) ns.
    Nothing computes beside it but the CPU."""
    place = folder(tmp_path, [[cpu(1, 2), compute(2, 1), collective(3, 0, 96_637, deps=[2])]] * 2, local_mem_bw=None)
    found = answer(place)
    assert found["ns"] == pytest.approx(1_000 + 2 * (1_000 + 500) + 30, abs=0.1)
    assert found["exposed_ns"] == pytest.approx(2 * (1_000 + 500) + 30, abs=0.1)
