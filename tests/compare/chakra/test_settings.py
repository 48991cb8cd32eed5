"""What ASTRA-sim reads beside a trace: written, read back, and what is wrong with it in one line."""

import json
import math
from dataclasses import replace

import pytest

from compare.chakra.settings import (
    count_in_ns,
    count_in_ps,
    export_machine,
    read_settings,
    write_network,
    write_system,
)
from compare.network.machines.machine import Algorithm, Algorithms
from compare.network.machines.tpu import tpu_machine
from compare.timeline.errors import TimingError
from meshes.devices.topology import Topology

SIDES = {
    "v5e:2x4": ([("ring", 2), ("ring", 4)], "local-bw-aware", 1),
    # Sides that close are rings both ways: two chunks in two queues.
    "v5e:16x16": ([("ring", 16), ("ring", 16)], "baseline", 2),
    "v5p:4x4x4": ([("ring", 4)] * 3, "baseline", 2),
    "v4:2x2x2": ([("ring", 2)] * 3 + [("fully-connected", 2)], "local-bw-aware", 1),
    "2xv5e:4x4": ([("ring", 4), ("ring", 4), ("switch", 2)], "local-bw-aware", 1),
    "v6e:1x2": ([("ring", 2)], "local-bw-aware", 1),
}


@pytest.mark.parametrize("name", SIDES)
def test_a_slice_is_its_sides_of_two_or_more_then_cores_then_slices(name):
    dims, multi, chunks = SIDES[name]
    machine = export_machine(Topology.parse(name))
    assert [(dim.kind, dim.size) for dim in machine.dims] == dims
    assert machine.multi == multi
    assert {machine.chunks, machine.active_chunks, machine.queues} == {chunks}
    assert machine.endpoint_ns == 10


def test_between_slices_two_hops_are_the_launch_of_the_data_centre():
    dim = export_machine(Topology.parse("2xv5e:4x4")).dims[-1]
    assert (dim.latency_ns, dim.bytes_per_ns) == (25_000, 3.125)


def write(folder, machine):
    (folder / "network.yml").write_text(write_network(machine))
    (folder / "system.json").write_text(write_system(machine))
    (folder / "run.txt").write_text(f"x --num-queues-per-dim={machine.queues}\n")


@pytest.mark.parametrize("name", SIDES)
def test_what_is_written_is_read(tmp_path, name):
    machine = count_in_ps(export_machine(Topology.parse(name)))
    write(tmp_path, machine)
    found = read_settings(tmp_path, num_ranks=machine.num_ranks).machine
    for one, other in zip(found.dims, machine.dims, strict=True):
        assert math.isclose(one.bytes_per_ns, other.bytes_per_ns, rel_tol=1e-14)
        assert math.isclose(one.latency_ns, other.latency_ns, rel_tol=1e-14)
    assert replace(found, dims=machine.dims, name=machine.name) == machine


def test_every_algorithm_has_a_word(tmp_path):
    words = ("ring", "direct", "halving-doubling", "double-binary-tree", "one-direct")
    for algorithm in (*map(Algorithm, words), Algorithm("direct", 3)):
        machine = replace(export_machine(Topology.parse("v6e:1x2")), algorithms=Algorithms.alike((algorithm,)))
        write(tmp_path, machine)
        assert read_settings(tmp_path, num_ranks=2).machine.algorithms == machine.algorithms


def test_ps_and_back():
    machine = export_machine(Topology.parse("v5e:2x4"))
    inside = count_in_ps(machine)
    assert inside.dims[0].latency_ns == pytest.approx(465_670)
    assert inside.dims[0].bytes_per_ns == pytest.approx(0.037303)
    back = count_in_ns(inside, 1)
    assert back.dims[0].latency_ns == pytest.approx(465.67)
    assert back.endpoint_ns == 0


def test_a_line_has_no_word():
    with pytest.raises(TimingError, match="ASTRA-sim has no line"):
        write_network(tpu_machine("v5e:2x4"))


NETWORK = {"topology": "[ Ring ]", "npus_count": "[ 2 ]", "bandwidth": "[ 1e3 ]", "latency": "[ 5.5 ]"}
SYSTEM = {
    "scheduling-policy": "FIFO",
    "preferred-dataset-splits": 1,
    "collective-optimization": "baseline",
    "local-mem-bw": 50,
    **{f"{kind}-implementation": ["ring"] for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")},
}


def settings(folder, network=(), system=()):
    changed = {**NETWORK, **dict(network)}
    (folder / "network.yml").write_text("".join(f"{key}: {value}\n" for key, value in changed.items() if value))
    table = {key: value for key, value in {**SYSTEM, **dict(system)}.items() if value is not None}
    (folder / "system.json").write_text(json.dumps(table))
    return read_settings(folder, num_ranks=2)


def test_settings_of_others_have_defaults(tmp_path):
    machine = settings(tmp_path).machine
    assert (machine.endpoint_ns, machine.queues, machine.active_chunks) == (10, 1, 1)
    assert machine.dims[0].bytes_per_ns == pytest.approx(1000 * 2**30 / 1e9)


@pytest.mark.parametrize(
    ("network", "system", "problem"),
    [
        ({"topology": "[ Torus ]"}, {}, r"network\.yml: dim 0: unknown dim 'Torus'"),
        ({"npus_count": "[ 2, 2 ]"}, {}, r"network\.yml: npus_count: a list with one entry for each dim"),
        ({"npus_count": "[ 2.5 ]"}, {}, "npus_count: a whole number for each dim, not 2.5"),
        ({"npus_count": "[ 1 ]"}, {}, "dim 0: size: a dim has 2 to"),
        ({"npus_count": "[ 4 ]"}, {}, "npus_count: 4 ranks, and the trace has 2"),
        ({"bandwidth": "[ 0 ]"}, {}, "dim 0: bandwidth: .*more than 0"),
        ({"bandwidth": "[ fast ]"}, {}, "bandwidth: a number, not 'fast'"),
        ({"latency": ""}, {}, "latency: a list with one entry for each dim, not None"),
        ({"latency": "[ 5"}, {}, r"network\.yml: no YAML"),
        ({}, {"scheduling-policy": None}, r"system\.json: scheduling-policy: FIFO, LIFO or EXPLICIT, not None"),
        ({}, {"collective-optimization": "best"}, "collective-optimization: localBWAware or baseline, not 'best'"),
        ({}, {"preferred-dataset-splits": None}, "preferred-dataset-splits: a whole number, not None"),
        ({}, {"local-mem-bw": "fast"}, "local-mem-bw: a number, not 'fast'"),
        ({}, {"endpoint-delay": "9" * 400}, "endpoint-delay: a number, not '9999"),
        ({}, {"endpoint-delay": "nan"}, "endpoint-delay: a number, not 'nan'"),
        ({}, {"roofline-enabled": 1}, "peak-perf: a number, not None"),
        ({}, {"model-shared-bus": 1}, "model-shared-bus: only 0 is simulated, not 1"),
        ({}, {"per-node-custom-implementation": "x.yml"}, "'per-node-custom-implementation': not simulated"),
        (
            {},
            {"all-reduce-implementation-custom": ["ring"]},
            r"ring\.0\.et is not there; the prefix is looked for from",
        ),
        ({}, {"speed": 1}, "'speed': not simulated"),
        ({}, {"all-reduce-implementation": "ring"}, "all-reduce-implementation: a list of words"),
        ({}, {"all-reduce-implementation": ["best"]}, "all-reduce-implementation: unknown algorithm 'best'"),
        (
            {},
            {"all-reduce-implementation": ["ring", "ring"]},
            r"system\.json: algorithm: 2 algorithms of all-reduce for 1",
        ),
    ],
)
def test_what_is_wrong_names_file_and_key(tmp_path, network, system, problem):
    with pytest.raises(TimingError, match=problem) as caught:
        settings(tmp_path, network, system)
    assert "\n" not in str(caught.value)
