"""Whole programs on a machine, worked by hand: 1 byte a ns, 100 ns a hop."""

import numpy as np
import pytest

from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.graph.graph import COMPUTE, Graph, NodeTableBuilder
from compare.network.machines.collective import Collective
from compare.network.machines.kinds import ALL_REDUCE, ALL_TO_ALL, FULLY_CONNECTED, KINDS, LINE, RING, SWITCH
from compare.network.native.times import time_collective
from compare.timeline.errors import TimingError
from tests.compare.network.engine.toys import Program, exchange_on_4x4x4, machine_of

ROWS = ((0, 1, 2, 3), (4, 5, 6, 7))
COLUMNS = ((0, 4), (1, 5), (2, 6), (3, 7))


def run(program, machine, **options):
    return simulate_graph(Plan.of(program.graph(), machine), machine, **options)


def total(program, machine, **options):
    return run(program, machine, **options).total_ns


def test_compute_runs_one_node_at_a_time_and_a_collective_beside_it():
    """Two nodes of 500 and 300 without dependency, 800; the all-reduce of 2,400 bytes, 6·700 = 4,200, beside them."""
    program = Program(4)
    for rank in range(4):
        program.compute(rank, 500, after=[])
        program.compute(rank, 300, after=[])
    program.collective(ALL_REDUCE, 2_400, (0, 1, 2, 3), after=[])
    assert total(program, machine_of((RING, 4))) == 4_200


def test_a_collective_begins_when_its_last_member_has_come():
    program = Program(4)
    program.compute(2, 1_000)
    program.collective(ALL_REDUCE, 2_400, (0, 1, 2, 3))
    simulated = run(program, machine_of((RING, 4)))
    assert simulated.total_ns == 1_000 + 4_200
    joined = [float(simulated.joined[index][-1]) for index in range(len(simulated.joined))]
    assert joined == [1_000] * len(joined)


def test_two_all_reduces_on_disjoint_links_take_the_maximum_and_not_the_sum():
    """Over rows of four, 6·(100 + 600) = 4,200; over columns of two, 2·(100 + 1,200) = 2,600; both at once 4,200."""
    program = Program(8)
    program.collective(ALL_REDUCE, 2_400, *ROWS, after=[])
    program.collective(ALL_REDUCE, 2_400, *COLUMNS, after=[])
    assert total(program, machine_of((RING, 4), (RING, 2))) == 4_200


def test_two_all_reduces_on_the_same_links_share_them():
    """Each 6·100 of latency and 3,600 on the links: both have sent when 7,200 have passed."""
    program = Program(4)
    program.collective(ALL_REDUCE, 2_400, (0, 1, 2, 3), after=[])
    program.collective(ALL_REDUCE, 2_400, (0, 1, 2, 3), after=[])
    assert total(program, machine_of((RING, 4))) == 600 + 7_200


def test_a_shorter_transfer_leaves_the_links_to_the_longer_one():
    """1,800 and 3,600 on the links: half speed until 3,600 have passed, then the rest, 1,800, alone."""
    program = Program(4)
    program.collective(ALL_REDUCE, 1_200, (0, 1, 2, 3), after=[])
    program.collective(ALL_REDUCE, 2_400, (0, 1, 2, 3), after=[])
    simulated = run(program, machine_of((RING, 4)))
    assert sorted(float(end) for end in simulated.ends[0]) == [600 + 3_600, 600 + 5_400]


def test_incast_on_a_switch_shares_the_link_down_to_the_receiver():
    """Three messages of 600 to rank 3: 200 of latency, 1,800 through the one link down."""
    program = Program(4)
    program.messages(600, (0, 3), after=[])
    program.messages(600, (1, 3), after=[])
    program.messages(600, (2, 3), after=[])
    assert total(program, machine_of((SWITCH, 4))) == 200 + 1_800


def test_messages_of_one_permute_to_different_ranks_do_not_disturb_each_other_on_a_switch():
    program = Program(4)
    program.messages(600, (0, 1), (1, 2), (2, 3), (3, 0))
    assert total(program, machine_of((SWITCH, 4))) == 200 + 600


def test_a_message_takes_the_true_path_over_all_dims():
    """(0,0,0) to (2,2,2) of 4×4×4: 6 hops, the bytes once."""
    program = Program(64)
    program.messages(1_000, (0, 2 + 4 * 2 + 16 * 2))
    assert total(program, machine_of((RING, 4), (RING, 4), (RING, 4))) == 600 + 1_000


def test_an_exchange_on_4x4x4_loads_each_link_as_counted_by_hand():
    """Over a link up in x go the messages at distance 1 of one rank and at distance 2 of two, to 16 places (y, z) each:
    48 of 10 bytes; over a link down those at distance 3, 16.  In y and z alike.  So a link up carries 480 bytes."""
    machine = machine_of((RING, 4), (RING, 4), (RING, 4))
    plan = Plan.of(exchange_on_4x4x4(10).alike(), machine)
    loads = {0: 0.0, 1: 0.0}
    for traffic in plan.traffics:
        for footprint in traffic.footprints:
            for part in footprint.passes:
                of_rank_0 = part.uses.link < plan.links.slots
                for link, load in zip(part.uses.link[of_rank_0], part.uses.load[of_rank_0], strict=True):
                    loads[int(link) % 2] += 10 * float(load)
    assert loads == {0: 3 * 480, 1: 3 * 160}
    assert plan.classes.count == 1
    # All begin at once and none is longer than the others: the full links are never idle.
    total_ns = simulate_graph(plan, machine).total_ns
    assert 480 + 100 <= total_ns <= 480 + 600


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dims", "algorithms"),
    [
        (((RING, 8),), ("ring",)),
        (((LINE, 4),), ("ring",)),
        (((SWITCH, 4),), ("ring",)),
        (((RING, 8),), ("two-way-ring",)),
        (((RING, 6),), ("direct",)),
        (((SWITCH, 5),), ("direct:2",)),
        (((FULLY_CONNECTED, 4),), ("direct",)),
        (((RING, 8),), ("halving-doubling",)),
        (((SWITCH, 8),), ("double-binary-tree",)),
        (((RING, 4), (RING, 2)), ("ring", "direct")),
        (((RING, 4), (SWITCH, 2), (FULLY_CONNECTED, 2)), ("ring", "ring", "direct")),
    ],
)
def test_a_collective_alone_takes_as_long_as_its_closed_form(kind, dims, algorithms):
    machine = machine_of(*dims, algorithms=algorithms, memory_bytes_per_ns=3.0, endpoint_ns=10, launch_ns=50.0)
    try:
        expected = time_collective(machine, Collective(kind=kind, num_bytes=2_400))
    except TimingError:
        assert kind == ALL_TO_ALL or "tree" in algorithms[0]
        return
    program = Program(machine.num_ranks)
    program.collective(kind, 2_400, tuple(range(machine.num_ranks)))
    assert total(program, machine) == pytest.approx(expected)


def test_chunks_follow_each_other_through_the_dims():
    machine = machine_of((RING, 4), (RING, 2), chunks=4)
    program = Program(8)
    program.collective(ALL_REDUCE, 2_400, tuple(range(8)))
    assert total(program, machine) == pytest.approx(
        time_collective(machine, Collective(kind=ALL_REDUCE, num_bytes=2_400))
    )


def test_a_sub_group_runs_on_its_own_dims():
    """Columns of two on the second dim: 2·(100 + 1,200), whatever the first."""
    program = Program(8)
    program.collective(ALL_REDUCE, 2_400, *COLUMNS)
    assert total(program, machine_of((RING, 4), (RING, 2))) == 2_600


def test_groups_that_fill_no_dim_are_rings_over_shared_links():
    """Pairs (0, 2) and (1, 3) of a line: each step sends 1,200 both ways over two hops, and the middle link carries
    both groups' messages: 2·(200 + 2,400)."""
    program = Program(4)
    program.collective(ALL_REDUCE, 2_400, (0, 2), (1, 3))
    assert total(program, machine_of((LINE, 4))) == 2 * (200 + 2_400)


def test_a_group_inside_a_dim_runs_that_dims_algorithm_over_its_ranks():
    """Four of eight ranks of a switch, direct: 2·(200 + 3·600), as four ranks on a switch of their own."""
    program = Program(8)
    program.collective(ALL_REDUCE, 2_400, (0, 2, 4, 6))
    assert total(program, machine_of((SWITCH, 8), algorithms=("direct",))) == 2 * (200 + 1_800)


def test_ranks_that_do_the_same_are_played_once():
    program = Program(8)
    for rank in range(8):
        program.compute(rank, 10)
    program.collective(ALL_REDUCE, 2_400, *ROWS)
    plan = Plan.of(program.alike(), machine_of((RING, 4), (RING, 2)))
    assert plan.classes.count == 1
    assert simulate_graph(plan, machine_of((RING, 4), (RING, 2))).total_ns == 10 + 4_200


def test_a_late_receiver_holds_up_a_rendezvous_and_not_an_eager_message():
    program = Program(2)
    program.compute(1, 5_000)
    program.messages(600, (0, 1))
    machine = machine_of((RING, 2))
    assert run(program, machine).rank_ends().tolist() == [5_700, 5_700]
    assert run(program, machine, eager=True).rank_ends().tolist() == [700, 5_000]


def test_compute_with_known_flops_follows_the_roofline_of_a_machine_that_has_a_peak():
    """600 flops at 2 a ns, 300; then 1,200 bytes at 3 a ns, 400; a node without either keeps its 50."""
    nodes = NodeTableBuilder()
    nodes.add(COMPUTE, "both", [], duration_ps=7_000, flops=600.0, memory_bytes=600.0)
    nodes.add(COMPUTE, "memory", [0], duration_ps=7_000, flops=1.0, memory_bytes=1_200.0)
    nodes.add(COMPUTE, "neither", [1], duration_ps=50_000)
    graph = Graph(name="toy", num_ranks=2, tables=(nodes.build(),), table_of=np.zeros(2, np.int64), transfers=())
    machine = machine_of((RING, 2), peak_flops_per_ns=2.0, memory_bytes_per_ns=3.0)
    assert simulate_graph(Plan.of(graph, machine), machine).total_ns == 300 + 400 + 50
    plain = machine_of((RING, 2))
    assert simulate_graph(Plan.of(graph, plain), plain).total_ns == 7 + 7 + 50
