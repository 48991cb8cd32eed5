"""Message by message: queues on links, cut-through and store-and-forward, and flows held against them.

1 byte a ns, 100 ns a hop.
"""

import pytest

from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.machines.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    CUT_THROUGH,
    FULLY_CONNECTED,
    LINE,
    REDUCE_SCATTER,
    RING,
    SHARED,
    STORE_AND_FORWARD,
    SWITCH,
)
from compare.timeline.errors import TimingError
from tests.compare.network.engine.toys import Program, exchange_on_4x4x4, machine_of


def ends(program, machine):
    return simulate_graph(Plan.of(program.graph(), machine), machine).rank_ends().tolist()


@pytest.mark.parametrize(("links", "expected"), [(CUT_THROUGH, 300 + 600), (STORE_AND_FORWARD, 3 * 700)])
def test_a_message_over_three_hops_pays_its_bytes_once_or_at_each(links, expected):
    program = Program(8)
    program.messages(600, (0, 3))
    assert ends(program, machine_of((RING, 8), links=links))[3] == expected


@pytest.mark.parametrize(
    ("links", "expected"), [(CUT_THROUGH, (800, 1_400, 2_000)), (STORE_AND_FORWARD, (1_400, 2_000, 2_600))]
)
def test_incast_on_a_switch_is_one_message_behind_another(links, expected):
    """Three messages of 600 to rank 3 through its one link down: each holds it for 600."""
    program = Program(4)
    for source in range(3):
        program.messages(600, (source, 3), after=[])
    simulated = ends(program, machine_of((SWITCH, 4), links=links))
    assert tuple(simulated[:3]) == expected
    assert simulated[3] == expected[2]


def test_a_message_waits_behind_another_on_a_link_of_its_way():
    """0 to 2 holds the link 1-2 from 100 to 700; 1 to 2, sent at once, has it first: from 0 to 600."""
    program = Program(8)
    program.messages(600, (1, 2), after=[])
    program.messages(600, (0, 2), after=[])
    simulated = ends(program, machine_of((RING, 8), links=CUT_THROUGH))
    assert simulated[1] == 700
    assert simulated[0] == 600 + 600 + 100


SAME = [
    (((RING, 8),), "ring", ALL_REDUCE),
    (((RING, 8),), "two-way-ring", ALL_GATHER),
    (((SWITCH, 4),), "ring", ALL_REDUCE),
    (((FULLY_CONNECTED, 4),), "direct", ALL_TO_ALL),
    (((SWITCH, 8),), "halving-doubling", REDUCE_SCATTER),
    (((RING, 4), (RING, 2)), "ring", ALL_REDUCE),
    (((RING, 4), (SWITCH, 2), (RING, 3)), "ring", REDUCE_SCATTER),
]


@pytest.mark.parametrize(("dims", "algorithm", "kind"), SAME)
def test_where_ranks_march_in_step_flows_and_messages_take_the_same_time(dims, algorithm, kind):
    options = {"algorithms": (algorithm,) * len(dims), "memory_bytes_per_ns": 3.0, "launch_ns": 50.0}
    # Over several dims a flow pays the delay of an endpoint once more in each.
    options["endpoint_ns"] = 10 if len(dims) == 1 else 0
    times = []
    for links in (SHARED, CUT_THROUGH):
        machine = machine_of(*dims, links=links, **options)
        program = Program(machine.num_ranks)
        program.collective(kind, 2_400, tuple(range(machine.num_ranks)))
        times.append(max(ends(program, machine)))
    assert times[1] == pytest.approx(times[0])


NEAR = [
    # The last rank's message goes back over the line against the others, which need not wait for it in every step.
    (((LINE, 4),), "ring", ALL_REDUCE, 0.55, 1.0),
    # Queues are not fair: messages of different length stand in each other's way.
    (((RING, 8),), "direct", ALL_TO_ALL, 0.9, 1.3),
    (((SWITCH, 8),), "direct", ALL_REDUCE, 0.9, 1.3),
    (((SWITCH, 8),), "double-binary-tree", ALL_REDUCE, 0.8, 1.2),
    (((RING, 4), (RING, 4)), "direct", ALL_GATHER, 0.8, 1.2),
]


@pytest.mark.parametrize(("dims", "algorithm", "kind", "least", "most"), NEAR)
def test_elsewhere_messages_stay_near_the_flows(dims, algorithm, kind, least, most):
    times = []
    for links in (SHARED, CUT_THROUGH):
        machine = machine_of(*dims, links=links, algorithms=(algorithm,) * len(dims))
        program = Program(machine.num_ranks)
        program.collective(kind, 240_000, tuple(range(machine.num_ranks)))
        times.append(max(ends(program, machine)))
    assert least <= times[1] / times[0] <= most


def test_two_all_reduces_on_the_same_links_take_the_sum_in_queues_too():
    times = []
    for links in (SHARED, CUT_THROUGH):
        program = Program(4)
        for _ in range(2):
            program.collective(ALL_REDUCE, 240_000, (0, 1, 2, 3), after=[])
        times.append(max(ends(program, machine_of((RING, 4), links=links))))
    assert times[1] == pytest.approx(times[0], rel=0.01)


@pytest.mark.slow
def test_an_exchange_on_4x4x4_takes_what_its_fullest_link_carries():
    """Each rank sends 1,000 bytes to each other: 48 messages over each link up, 48,000 ns (test_graph_simulator); in
    queues some links stand idle meanwhile."""
    program = exchange_on_4x4x4(1_000)
    machine = machine_of((RING, 4), (RING, 4), (RING, 4), links=CUT_THROUGH)
    assert 48_000 <= max(ends(program, machine)) <= 2 * 48_000


def test_chunks_are_refused():
    program = Program(4)
    program.collective(ALL_REDUCE, 240, (0, 1, 2, 3))
    with pytest.raises(TimingError, match="links: cut-through simulates collectives in one chunk, not 2"):
        ends(program, machine_of((RING, 4), links=CUT_THROUGH, chunks=2))


def test_each_dim_has_its_own_algorithm_whatever_the_ranks_of_all_dims():
    """Halving over 4, a ring over 3: (100 + 1,200) + (200 + 2·600), 4·(100 + 200), and the halving back."""
    program = Program(12)
    program.collective(ALL_REDUCE, 2_400, tuple(range(12)))
    dims, algorithms = ((RING, 4), (RING, 3)), ("halving-doubling", "ring")
    flows = machine_of(*dims, algorithms=algorithms)
    queued = machine_of(*dims, algorithms=algorithms, links=STORE_AND_FORWARD)
    for machine in (flows, queued):
        assert simulate_graph(Plan.of(program.graph(), machine), machine).total_ns == 2_700 + 1_200 + 2_700
