"""The law table: the closed forms of docs/network.md, each worked by hand, and the replay.

One dim of 4 or 8 ranks, 1 byte a ns, 100 ns a hop, memory 3 bytes a ns (so that a reduction of m bytes takes
3·floor(m/3)), endpoint delay 10; S = 2,400 bytes.
"""

import pytest

from compare.network.astra_sim.replay import count_cycles, time_messages
from compare.network.machines.collective import Collective, Message
from compare.network.machines.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    DIRECT,
    DOUBLE_BINARY_TREE,
    FULLY_CONNECTED,
    HALVING_DOUBLING,
    REDUCE_SCATTER,
    RING,
    SWITCH,
)
from compare.network.machines.machine import Algorithms, Dim, Machine
from compare.network.machines.words import parse_algorithm

S = 2_400

# Ring of 4: S/n = 600, hop 700, P 600.  Of 8: S/n = 300.
LAWS = [
    (RING, 4, RING, ALL_REDUCE, 6 * 700 + 3 * 600 + 7 * 10),
    (RING, 4, RING, REDUCE_SCATTER, 3 * 700 + 3 * 600 + 4 * 10),
    (RING, 4, RING, ALL_GATHER, 3 * 2_500 + 4 * 10),
    (RING, 4, RING, ALL_TO_ALL, 6 * 700 + 7 * 10),
    (SWITCH, 4, RING, ALL_REDUCE, 6 * 800 + 3 * 600 + 7 * 10),
    (FULLY_CONNECTED, 4, DIRECT, ALL_REDUCE, 2 * 700 + 600 + 3 * 10),
    (FULLY_CONNECTED, 4, DIRECT, REDUCE_SCATTER, 700 + 600 + 2 * 10),
    (FULLY_CONNECTED, 4, DIRECT, ALL_GATHER, 2_500 + 2 * 10),
    (RING, 8, DIRECT, ALL_TO_ALL, 4 * 100 + 300 + 2 * 10),
    (FULLY_CONNECTED, 4, "direct:1", ALL_REDUCE, 6 * 700 + 2 * 600 + 7 * 10),
    (FULLY_CONNECTED, 4, "direct:2", ALL_TO_ALL, 2 * 700 + 3 * 10),
    (RING, 8, HALVING_DOUBLING, REDUCE_SCATTER, (100 + 1_200) + (200 + 600) + (400 + 300) + 600 + 300 + 4 * 10),
    (RING, 8, HALVING_DOUBLING, ALL_GATHER, (400 + 2_400) + (200 + 4_800) + (100 + 9_600) + 4 * 10),
    (SWITCH, 4, HALVING_DOUBLING, ALL_REDUCE, 2 * (200 + 1_200) + 2 * (200 + 600) + 600 + 5 * 10),
    (RING, 8, DOUBLE_BINARY_TREE, ALL_REDUCE, 2 * (2_500 + 2_600 + 2_800) + 5 * 2_400 + 7 * 10),
]


def machine_of(kind, size, algorithm):
    dim = Dim(kind=kind, size=size, bytes_per_ns=1.0, latency_ns=100.0)
    algorithms = Algorithms.alike((parse_algorithm(algorithm),))
    return Machine(dims=(dim,), algorithms=algorithms, memory_bytes_per_ns=3.0, endpoint_ns=10)


# Each link carries the whole message before the next begins: hop(m, d) = d × 700, through a switch 2 × 700.
AWARE = [
    (RING, 4, RING, ALL_REDUCE, 6 * 700 + 3 * 600 + 7 * 10),
    (SWITCH, 4, RING, ALL_REDUCE, 6 * 1_400 + 3 * 600 + 7 * 10),
    # The busiest link carries 3 messages (h = 2) of 600; over the switch 4 times the bytes and 2 hops.
    (RING, 4, DIRECT, ALL_TO_ALL, (3 - 2) * 600 + 2 * 700 + 2 * 10),
    (SWITCH, 4, DIRECT, ALL_TO_ALL, (4 - 2) * 600 + 2 * 700 + 2 * 10),
    (FULLY_CONNECTED, 4, DIRECT, ALL_TO_ALL, 700 + 2 * 10),
    (RING, 4, HALVING_DOUBLING, ALL_REDUCE, 2 * (1_300 + 2 * 700) + 600 + 5 * 10),
    (RING, 4, DOUBLE_BINARY_TREE, ALL_REDUCE, 2 * (2_500 + 2 * 2_500) + 3 * 2_400 + 5 * 10),
    (SWITCH, 4, DOUBLE_BINARY_TREE, ALL_REDUCE, 2 * (5_000 + 5_000) + 2 * 2_400 + 3 * 2_400 + 5 * 10),
]


@pytest.mark.parametrize(("aware", "law"), [*((False, law) for law in LAWS), *((True, law) for law in AWARE)])
def test_a_law_is_its_formula_worked_by_hand(aware, law):
    dim, size, algorithm, kind, cycles = law
    ends = count_cycles(machine_of(dim, size, algorithm), Collective(kind=kind, num_bytes=S), aware=aware)
    assert max(ends) == cycles


def test_a_message_is_its_hops_and_its_bytes():
    machine = machine_of(RING, 8, RING)
    messages = [Message(0, 3, S), Message(4, 7, S), Message(1, 0, S)]
    assert time_messages(machine, messages) == (300 + S, 300 + S, 100 + S)
    # Shared links: the whole message over each link before the next one.
    assert time_messages(machine, messages[:1], aware=True) == (3 * (100 + S),)


def test_doubling_starts_from_twice_the_half_of_what_is_left():
    # S = 20 over 4 ranks: 10, then 5 there; back 4 (twice the half of 5), then 8.  P(5) = 3.
    cycles = 110 + 105 + 104 + 108 + 3 + 5 * 10
    machine = machine_of(FULLY_CONNECTED, 4, HALVING_DOUBLING)
    assert count_cycles(machine, Collective(kind=ALL_REDUCE, num_bytes=20)) == (cycles,)
