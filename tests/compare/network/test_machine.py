"""Machines: from TOML files, and TPU slices by name; what is wrong is one line that names its key."""

import pytest

from compare.network.engine.pairs import time_messages
from compare.network.machines.collective import Collective, Message
from compare.network.machines.kinds import (
    ALL_REDUCE,
    ALL_TO_ALL,
    DIRECT,
    FULLY_CONNECTED,
    LINE,
    RING,
    SWITCH,
    TWO_WAY_RING,
)
from compare.network.machines.machine import Algorithm, Algorithms, Dim, Machine
from compare.network.machines.machine_file import read_machine
from compare.network.machines.tpu import astra_sim_machine, tpu_machine
from compare.network.machines.words import parse_algorithm, parse_kind
from compare.network.native.times import time_collective
from compare.timeline.errors import TimingError
from meshes.devices.generations import generation

GOOD = """
name = "two rings"
memory = 2765
multi = "baseline"
chunks = 4
active-chunks = 2
queues = 2
endpoint = 10

[[dims]]
kind = "ring"
size = 4
bandwidth = 90
latency = 1000

[[dims]]
kind = "fully-connected"
size = 2
bandwidth = 45.5
latency = 500
algorithm = "direct:1"

[algorithms]
all-to-all = ["direct", "direct"]
"""


@pytest.fixture
def write(tmp_path):
    def write_machine(text):
        path = tmp_path / "machine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_machine


def test_a_file_is_a_machine(write):
    machine = read_machine(write(GOOD))
    ring, direct = Algorithm(), Algorithm(DIRECT, 1)
    assert machine == Machine(
        name="two rings",
        dims=(
            Dim(kind=RING, size=4, bytes_per_ns=90, latency_ns=1000),
            Dim(kind=FULLY_CONNECTED, size=2, bytes_per_ns=45.5, latency_ns=500),
        ),
        algorithms=Algorithms.alike((ring, direct)).replace({ALL_TO_ALL: (Algorithm(DIRECT), Algorithm(DIRECT))}),
        multi="baseline",
        chunks=4,
        active_chunks=2,
        queues=2,
        memory_bytes_per_ns=2765,
        endpoint_ns=10,
    )
    assert machine.num_ranks == 8
    assert machine.slots == 1
    assert machine.coordinates(6) == (2, 1)


WRONG = [
    (("size = 4", "size = 1"), "dims.0.size: a dim has 2 to 65,536 ranks, not 1"),
    (("size = 4", "size = 4.0"), "dims.0.size: a whole number, not 4.0"),
    (("size = 4\n", ""), "dims.0.size: a whole number, not None"),
    (("bandwidth = 45.5", "bandwidth = 0"), "dims.1.bandwidth: the bandwidth of a dim is more than 0, not 0"),
    (("bandwidth = 45.5", 'bandwidth = "fast"'), "dims.1.bandwidth: a number, not 'fast'"),
    (("latency = 500", "latency = -1"), "dims.1.latency: the latency of a dim is 0 to 1e+15, not -1"),
    (('kind = "ring"', 'kind = "torus"'), "dims.0.kind: unknown dim 'torus'; known are ring, line"),
    (('kind = "ring"', 'kind = "ring"\nspeed = 3'), "dims.0.speed: unknown key; known are kind, size"),
    (("direct:1", "direct:0"), "dims.1.algorithm: unknown algorithm 'direct:0'"),
    (("chunks = 4", "chunks = 0"), "chunks: a whole number from 1, not 0"),
    (("chunks = 4", "chunks = 10001"), "chunks: at most 10,000, not 10,001"),
    (("bandwidth = 45.5", "bandwidth = 1e-300"), "dims.1.bandwidth: 1e-09 to 1e+12 bytes a ns, not 1e-300"),
    (("endpoint = 10", "endpoint = -1"), "endpoint: 0 or more, not -1"),
    (("memory = 2765", "memory = 0"), "memory: 1e-09 to 1e+12 bytes a ns, not 0"),
    (('multi = "baseline"', 'multi = "best"'), "multi: unknown 'best'; known are baseline, local-bw-aware"),
    (('["direct", "direct"]', '["direct"]'), "algorithms.all-to-all: a list of 2 words, one for each dim"),
    (("all-to-all = [", "broadcast = ["), "algorithms.broadcast: unknown key; known are all-reduce"),
    (("queues = 2", "queues = 2\nranks = 8"), "ranks: unknown key; known are name, memory"),
    (("[[dims]]", "[[rows]]"), "rows: unknown key"),
    (("size = 4", "size ="), "is not TOML"),
]


@pytest.mark.parametrize(("change", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_file_is_one_line_that_names_its_key(change, says, write):
    assert change[0] in GOOD
    with pytest.raises(TimingError) as error:
        read_machine(write(GOOD.replace(*change)))
    assert says in str(error.value)
    assert "machine.toml" in str(error.value)


def test_seven_dims_are_too_many(write):
    rows = '[[dims]]\nkind = "ring"\nsize = 2\nbandwidth = 1\nlatency = 1\n' * 7
    with pytest.raises(TimingError, match="1 to 6 tables"):
        read_machine(write(rows))


def test_words_are_ours_and_those_of_the_other_simulator():
    assert parse_algorithm("direct3") == parse_algorithm("direct:3") == Algorithm(DIRECT, 3)
    assert parse_algorithm("halvingDoubling") == parse_algorithm("halving-doubling")
    assert parse_kind("FullyConnected") == FULLY_CONNECTED
    with pytest.raises(TimingError, match="a window belongs to direct"):
        parse_algorithm("ring:2")


def test_a_slice_of_v6e_is_lines_until_a_side_of_16_closes():
    rates = generation("v6e").time
    small, large = tpu_machine("v6e:2x4"), tpu_machine("v6e:16x16")
    assert [(dim.kind, dim.size) for dim in small.dims] == [(LINE, 2), (LINE, 4)]
    assert [(dim.kind, dim.size) for dim in large.dims] == [(RING, 16), (RING, 16)]
    assert {algorithm.name for algorithm in large.algorithms.of(ALL_REDUCE)} == {TWO_WAY_RING}
    assert small.dims[0].bytes_per_ns == rates["link_bytes_per_s"].value / 1e9
    assert small.dims[0].latency_ns == rates["hop_s"].value * 1e9
    assert small.launch_ns == rates["launch_s"].value * 1e9


def test_cores_and_slices_are_dims_behind_the_sides():
    machine = tpu_machine("2xtpu7x:2x2x1")
    assert [(dim.kind, dim.size) for dim in machine.dims] == [(LINE, 2), (LINE, 2), (FULLY_CONNECTED, 2), (SWITCH, 2)]
    rates = generation("tpu7x").time
    assert machine.dims[2].bytes_per_ns == rates["chip_bytes_per_s"].value / 1e9
    assert machine.dims[3].latency_ns * 2 == rates["dcn_launch_s"].value * 1e9


def test_a_machine_for_the_other_simulator_has_rings_one_way_and_no_launch():
    closed = astra_sim_machine("v6e:2x4")
    assert [dim.kind for dim in closed.dims] == [RING, RING]
    assert {algorithm.name for algorithm in astra_sim_machine("v6e:16x16").algorithms.of(ALL_REDUCE)} == {RING}
    assert closed.launch_ns == 0
    assert closed.memory_bytes_per_ns == 1638


# The schedule model's times on v5e:2x4 (docs/example-run), in us: both count hops and bytes on links, each its own way.
MODELLED = [
    (Collective(kind="all-gather", num_bytes=2**22, group=(0, 2, 4, 6)), 342.68),
    (Collective(kind="all-gather", num_bytes=4_718_592 // 4, group=(0, 2, 4, 6)), 100.23),
    (Collective(kind="all-reduce", num_bytes=2**24, group=(0, 2, 4, 6)), 681.39),
    (Collective(kind="all-reduce", num_bytes=2**26, group=(0, 2, 4, 6)), 2705.29),
]


@pytest.mark.parametrize(("collective", "microseconds"), MODELLED)
def test_a_slice_is_within_a_few_percent_of_the_schedule_model(collective, microseconds):
    assert time_collective(tpu_machine("v5e:2x4"), collective) / 1e3 == pytest.approx(microseconds, rel=0.03)


def test_a_message_on_a_slice_takes_what_the_schedule_model_says():
    (ns,) = time_messages(tpu_machine("v5e:2x4"), [Message(0, 1, 2**24)])
    assert round(ns / 1e3, 2) == 454.19


def test_one_device_has_nobody_to_talk_to():
    with pytest.raises(TimingError, match="one device"):
        tpu_machine("v6e:1x1")


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_is_from_1(window):
    with pytest.raises(TimingError, match="window"):
        Algorithm(DIRECT, window)
