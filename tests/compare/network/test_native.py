"""Our own model: steps of latency and of bytes on the busiest link, each worked by hand.

4 or 8 ranks, 1 byte a ns, 100 ns a hop, S = 2,400 bytes a rank, reductions free unless said.
"""

from dataclasses import replace
from math import log2
from random import Random

import numpy as np
import pytest

from compare.network.algorithms import Step
from compare.network.engine.links import Links
from compare.network.engine.pairs import time_messages
from compare.network.machines.collective import Collective, Message
from compare.network.machines.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BASELINE,
    DIRECT,
    DOUBLE_BINARY_TREE,
    FULLY_CONNECTED,
    GREEDY,
    HALVING_DOUBLING,
    LINE,
    LOCAL_BW_AWARE,
    REDUCE_SCATTER,
    RING,
    SWITCH,
    TWO_WAY_RING,
)
from compare.network.machines.machine import Algorithms, Dim, Machine
from compare.network.machines.words import parse_algorithm
from compare.network.native.loads import measure_step
from compare.network.native.times import list_passes, time_collective
from compare.timeline.errors import TimingError

S = 2_400


def machine_of(*dims, algorithms=None, **rest):
    made = tuple(Dim(kind=kind, size=size, bytes_per_ns=1.0, latency_ns=100.0) for kind, size in dims)
    words = algorithms or (RING,) * len(dims)
    return Machine(dims=made, algorithms=Algorithms.alike(tuple(map(parse_algorithm, words))), **rest)


# S/n = 600 of 4 ranks, 300 of 8.
TABLE = [
    (RING, 4, RING, ALL_REDUCE, 6 * 700),
    (RING, 4, RING, REDUCE_SCATTER, 3 * 700),
    (RING, 4, RING, ALL_GATHER, 3 * 2_500),
    # Half of every message goes each way.
    (RING, 4, TWO_WAY_RING, ALL_REDUCE, 6 * 400),
    # A switch has one link up and one down for a rank: two ways gain nothing.
    (SWITCH, 4, RING, ALL_REDUCE, 6 * 800),
    (SWITCH, 4, TWO_WAY_RING, ALL_REDUCE, 6 * 800),
    # On a line the last rank's message goes back over three links, against the others.
    (LINE, 4, RING, ALL_REDUCE, 6 * 900),
    (LINE, 4, TWO_WAY_RING, ALL_REDUCE, 6 * 900),
    # 3, 2 and 1 messages over each link; two ways 2 up and 1 down, then 1 up (half way round).
    (RING, 4, RING, ALL_TO_ALL, 3 * 100 + 6 * 600),
    (RING, 4, TWO_WAY_RING, ALL_TO_ALL, (100 + 2 * 600) + (100 + 600)),
    (FULLY_CONNECTED, 4, DIRECT, ALL_REDUCE, 2 * 700),
    (FULLY_CONNECTED, 4, "direct:1", ALL_REDUCE, 6 * 700),
    (FULLY_CONNECTED, 4, "direct:2", ALL_TO_ALL, 2 * 700),
    (SWITCH, 4, DIRECT, ALL_TO_ALL, 200 + 3 * 600),
    # The busiest link of a ring of 8 carries 1 + 2 + 3 + 4 messages.
    (RING, 8, DIRECT, ALL_TO_ALL, 4 * 100 + 10 * 300),
    (FULLY_CONNECTED, 8, HALVING_DOUBLING, ALL_REDUCE, 2 * (1_300 + 700 + 400)),
    (FULLY_CONNECTED, 4, HALVING_DOUBLING, ALL_GATHER, (100 + 2_400) + (100 + 4_800)),
    # On a ring, d messages cross the middle of a swap at distance d.
    (RING, 4, HALVING_DOUBLING, REDUCE_SCATTER, (100 + 1_200) + (200 + 2 * 600)),
    # Two trees with 1,200 bytes each.  All links differ.
    (FULLY_CONNECTED, 4, DOUBLE_BINARY_TREE, ALL_REDUCE, 4 * 1_300),
    # Two children share the link down to their parent, and on the way back the parent's link up.
    (SWITCH, 4, DOUBLE_BINARY_TREE, ALL_REDUCE, 2 * (200 + 2_400) + 2 * (200 + 1_200)),
]


@pytest.mark.parametrize(("dim", "size", "algorithm", "kind", "ns"), TABLE)
def test_a_collective_in_one_dim(dim, size, algorithm, kind, ns):
    machine = machine_of((dim, size), algorithms=(algorithm,))
    assert time_collective(machine, Collective(kind=kind, num_bytes=S)) == pytest.approx(ns)


def count_passes(kind, size):
    """How often a kind passes over the data, and a rank's bytes there, in S."""
    return (2 if kind == ALL_REDUCE else 1), (size if kind == ALL_GATHER else 1)


CLOSED_FORMS = {
    # (n-1) steps of S/n to the neighbour.
    (RING, RING): lambda kind, n, passes, s: passes * (n - 1) * (100 + s / n),
    # Half of it either way.
    (RING, TWO_WAY_RING): lambda kind, n, passes, s: passes * (n - 1) * (100 + s / n / 2),
    # The furthest is n/2 away; a link up carries 1 + 2 + ... + n/2 messages.
    (RING, DIRECT): lambda kind, n, passes, s: passes * (n / 2 * 100 + n / 2 * (n / 2 + 1) / 2 * s / n),
    # Half of the ranks send over the middle to the other half.
    (LINE, DIRECT): lambda kind, n, passes, s: passes * ((n - 1) * 100 + n / 2 * n / 2 * s / n),
    (SWITCH, DIRECT): lambda kind, n, passes, s: passes * (200 + (n - 1) * s / n),
    (FULLY_CONNECTED, HALVING_DOUBLING): lambda kind, n, passes, s: passes * (log2(n) * 100 + s * (n - 1) / n),
    # At distance d, d messages cross a link: S/2 in every step.
    (LINE, HALVING_DOUBLING): lambda kind, n, passes, s: passes * ((n - 1) * 100 + log2(n) * s / 2),
    (RING, HALVING_DOUBLING): lambda kind, n, passes, s: passes * ((n - 1) * 100 + log2(n) * s / 2),
}


@pytest.mark.parametrize("size", [2, 4, 16, 64])
@pytest.mark.parametrize("kind", [ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER])
@pytest.mark.parametrize(("dim", "algorithm"), CLOSED_FORMS)
def test_larger_dims_take_as_long_as_the_closed_form(dim, algorithm, kind, size):
    machine = machine_of((dim, size), algorithms=(algorithm,))
    passes, share = count_passes(kind, size)
    expected = CLOSED_FORMS[dim, algorithm](kind, size, passes, share * S)
    if (dim, algorithm, size) == (RING, TWO_WAY_RING, 2):
        expected = passes * (100 + share * S / 2)  # both halves go the same way to the one neighbour
    assert time_collective(machine, Collective(kind=kind, num_bytes=S)) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [RING, LINE, SWITCH, FULLY_CONNECTED])
def test_any_messages_load_the_links_that_the_engine_counts(kind):
    random = Random(7)
    for size in (2, 5, 8):
        machine = machine_of((kind, size))
        ends = np.array([random.sample(range(size), 2) for _ in range(20)])
        share = np.array([random.random() for _ in ends])
        links = Links.of(machine)
        routes = links.route(ends[:, 0], ends[:, 1])
        hops, load = measure_step(Step(ends[:, 0], ends[:, 1], share), machine.dims[0])
        assert hops == np.bincount(routes.message).max()
        assert load == pytest.approx(routes.loads(share, links).max())


def test_two_ways_to_the_only_neighbour_are_one_link():
    """A full mesh of two has one link a way: both halves of S/2 go over it, in two passes."""
    machine = machine_of((FULLY_CONNECTED, 2), algorithms=(TWO_WAY_RING,))
    assert time_collective(machine, Collective(kind=ALL_REDUCE, num_bytes=S)) == 2 * (100 + S / 2)


def test_reductions_endpoints_and_the_launch_are_added():
    machine = machine_of((RING, 4), memory_bytes_per_ns=3.0, endpoint_ns=10, launch_ns=5_000.0)
    assert time_collective(machine, Collective(kind=ALL_REDUCE, num_bytes=S)) == 5_000 + 6 * 700 + 3 * 600 + 7 * 10


# Ring of 4 × ring of 2, reduce-scatter 3 × (100 + 600), all-reduce of 600: 2 × (100 + 300), all-gather 3 × 700.
def test_an_all_reduce_over_two_dims():
    machine = machine_of((RING, 4), (RING, 2))
    collective = Collective(kind=ALL_REDUCE, num_bytes=S)
    assert time_collective(machine, collective) == 2_100 + 800 + 2_100
    assert [(each.kind, each.dim, each.steps) for each in list_passes(machine, collective, S)] == [
        (REDUCE_SCATTER, 0, 3),
        (ALL_REDUCE, 1, 2),
        (ALL_GATHER, 0, 3),
    ]
    assert time_collective(replace(machine, multi=BASELINE), collective) == 4_200 + 2 * 1_300


def test_all_gather_comes_down_and_grows():
    machine = machine_of((RING, 4), (RING, 2))
    assert time_collective(machine, Collective(kind=ALL_GATHER, num_bytes=S)) == 2_500 + 3 * 4_900


def test_chunks_overlap_between_dims_and_not_within_one():
    # Two chunks of 1,200 over ring × ring of 2, baseline: 2 × (100 + 600) in each dim; the second follows by one dim.
    machine = machine_of((RING, 2), (RING, 2), chunks=2, multi=BASELINE)
    assert time_collective(machine, Collective(kind=ALL_REDUCE, num_bytes=S)) == 3 * 1_400


def test_a_group_runs_on_its_own_dims():
    machine = machine_of((RING, 4), (RING, 2))
    along = Collective(kind=ALL_REDUCE, num_bytes=S, group=(0, 1, 2, 3))
    across = Collective(kind=ALL_REDUCE, num_bytes=S, group=(1, 5))
    assert time_collective(machine, along) == 6 * 700
    assert time_collective(machine, across) == 2 * 1_300
    with pytest.raises(TimingError, match="fill no dims"):
        time_collective(machine, Collective(kind=ALL_REDUCE, num_bytes=S, group=(0, 1)))


def arrivals(machine, pairs):
    return time_messages(machine, [Message(*pair) for pair in pairs])


def test_messages_take_the_true_way_and_share_links():
    torus = machine_of((RING, 4), (RING, 2))
    # (0,0) to (2,1): two hops and one.
    assert arrivals(torus, [(0, 6, S)]) == [300 + S]
    # 0 to 2 and 1 to 2 on a ring of 4: both over the link from 1 to 2, which carries bytes from 100 on, without pause,
    # until both have arrived.  The second has it alone for 100 ns; then each has half, and the second arrives when as
    # much of the first is left.
    assert arrivals(machine_of((RING, 4)), [(0, 2, S), (1, 2, S)]) == [100 + 2 * S, 2 * S]
    # Incast: three senders share the link from the switch.
    assert arrivals(machine_of((SWITCH, 4)), [(0, 3, S), (1, 3, S), (2, 3, S)]) == [200 + 3 * S] * 3


def test_messages_of_different_sizes_share_a_link_until_the_smaller_has_gone():
    """400 and 100 bytes from one rank to its neighbour: half each until 200, then the other 300 alone."""
    machine = Machine(
        dims=(Dim(kind=RING, size=4, bytes_per_ns=1.0, latency_ns=0.0),),
        algorithms=Algorithms.alike((parse_algorithm(RING),)),
    )
    assert arrivals(machine, [(0, 1, 400), (0, 1, 100)]) == [500, 200]


@pytest.mark.parametrize(
    ("rest", "collective", "says"),
    [
        ({"active_chunks": 2}, {}, "no closed form"),
        ({"algorithms": (HALVING_DOUBLING,)}, {"kind": ALL_TO_ALL}, "no all-to-all"),
        ({"algorithms": (DOUBLE_BINARY_TREE,)}, {"kind": ALL_GATHER}, "makes an all-reduce, no all-gather"),
        ({"algorithms": ("one-ring",)}, {}, "no closed form"),
        ({}, {"num_bytes": 0}, "1 or more"),
        ({}, {"num_bytes": -1}, "0 or more"),
        ({}, {"kind": "broadcast"}, "unknown 'broadcast'"),
    ],
)
def test_what_has_no_closed_form_is_refused(rest, collective, says):
    machine = machine_of((RING, 4), **rest)
    with pytest.raises(TimingError, match=says):
        time_collective(machine, Collective(**{"kind": ALL_REDUCE, "num_bytes": S, **collective}))


@pytest.mark.parametrize("algorithm", [HALVING_DOUBLING, DOUBLE_BINARY_TREE])
def test_halves_and_trees_are_over_powers_of_two(algorithm):
    with pytest.raises(TimingError, match="power of two"):
        time_collective(machine_of((RING, 6), algorithms=(algorithm,)), Collective(kind=ALL_REDUCE, num_bytes=S))


def two_rings(rate, chunks):
    dims = tuple(Dim(kind=RING, size=2, bytes_per_ns=each, latency_ns=0.0) for each in (1.0, rate))
    return Machine(dims=dims, algorithms=Algorithms.alike((parse_algorithm(RING),) * 2), chunks=chunks)


def test_greedy_divides_the_chunks_between_the_orders():
    """Two chunks of 800 bytes over rings of two, 1 byte a ns, no latency: a reduce-scatter of 400, an all-reduce of the
    other dim of 400, an all-gather of 400.  In one order dim 0 has four times 400.  Where one chunk begins in each dim,
    both dims are busy from 0 to 1,200."""
    both = Collective(kind=ALL_REDUCE, num_bytes=1_600)
    assert time_collective(two_rings(1.0, 2), both) == 1_600
    assert time_collective(replace(two_rings(1.0, 2), multi=GREEDY), both) == 1_200


def test_greedy_takes_one_chunk_through_the_faster_dim_first():
    """800 bytes, dim 1 with 2 bytes a ns.  As they stand: 400, an all-reduce of 400 bytes in dim 1 of 200, 400.  The
    other way round: 200, an all-reduce of 400 bytes in dim 0 of 400, 200."""
    one = Collective(kind=ALL_REDUCE, num_bytes=800)
    assert time_collective(two_rings(2.0, 1), one) == 1_000
    assert time_collective(replace(two_rings(2.0, 1), multi=GREEDY), one) == 800


def random_machine(random):
    many = random.choice((2, 2, 2, 3))
    dims = tuple(
        Dim(
            kind=random.choice((RING, LINE, SWITCH, FULLY_CONNECTED)),
            size=random.choice((2, 3, 4, 8)),
            bytes_per_ns=10 ** random.uniform(0, 3),
            latency_ns=random.choice((0.0, 100.0, 1_000.0, 5_000.0)),
        )
        for _ in range(many)
    )
    words = [random.choice(("ring", "direct", "two-way-ring")) for _ in range(many)]
    return Machine(
        dims=dims,
        algorithms=Algorithms.alike(tuple(map(parse_algorithm, words))),
        multi=GREEDY,
        chunks=random.choice((1, 2, 4, 8)),
        memory_bytes_per_ns=random.choice((None, 500.0)),
    )


def test_no_faster_link_slows_a_greedy_collective_and_none_is_slower_than_in_the_fixed_order():
    random = Random(24)
    for _ in range(500):
        machine = random_machine(random)
        collective = Collective(
            kind=random.choice((ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER)), num_bytes=10 ** random.randint(3, 9)
        )
        place, factor = random.randrange(len(machine.dims)), random.choice((1.1, 2.0, 10.0))
        faster = tuple(
            replace(dim, bytes_per_ns=dim.bytes_per_ns * (factor if index == place else 1.0))
            for index, dim in enumerate(machine.dims)
        )
        ns = time_collective(machine, collective)
        assert time_collective(replace(machine, dims=faster), collective) <= ns * (1 + 1e-12), (machine, collective)
        assert ns <= time_collective(replace(machine, multi=LOCAL_BW_AWARE), collective) * (1 + 1e-12)
