"""Graphs that cannot run: every one is a line that names ranks and nodes."""

import pytest

from compare.network.engine.faults import GraphError
from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.graph.graph import COLLECTIVE, COMPUTE, PERMUTE, RECEIVE, SEND
from compare.network.machines.kinds import ALL_REDUCE, REDUCE_SCATTER, RING
from tests.compare.network.engine.toys import Program, machine_of

MACHINE = machine_of((RING, 4))


def fail(program):
    with pytest.raises(GraphError) as caught:
        simulate_graph(Plan.of(program.graph(), MACHINE), MACHINE)
    return str(caught.value)


def test_a_receive_without_a_send_is_named():
    program = Program(4)
    number = program.add(PERMUTE, 64, [(0, 1)])
    program.join(1, number, RECEIVE, 64)
    assert fail(program) == ("rank 1, node 1 (collective-permute.0): waits for rank 0, which has no such send")


def test_ends_of_different_size_are_named():
    program = Program(4)
    number = program.add(PERMUTE, 64, [(0, 1)])
    program.join(0, number, SEND, 64)
    program.compute(1, 5)
    program.join(1, number, RECEIVE, 32)
    assert fail(program) == (
        "rank 0, node 1 (collective-permute.0): 64 bytes and rank 1, node 2 (collective-permute.0): 32 bytes: the ends "
        "of one collective-permute differ in size"
    )


def test_a_member_that_is_missing_is_named():
    program = Program(4)
    number = program.add(ALL_REDUCE, 64, [(0, 1, 2, 3)])
    for rank in (0, 1, 3):
        program.join(rank, number, COLLECTIVE, 64)
    assert "waits for rank 2, which has no such collective" in fail(program)


def test_a_rank_outside_the_groups_is_named():
    program = Program(4)
    number = program.add(ALL_REDUCE, 64, [(0, 1)])
    for rank in range(3):
        program.join(rank, number, COLLECTIVE, 64)
    assert fail(program).startswith("rank 2, node 1 (all-reduce.0): is a collective of all-reduce, whose groups")


def test_one_end_twice_is_named():
    program = Program(4)
    number = program.add(ALL_REDUCE, 64, [(0, 1)])
    for rank in (0, 1, 1):
        program.join(rank, number, COLLECTIVE, 64)
    assert fail(program).startswith("rank 1: node 1 (all-reduce.0) and node 2 (all-reduce.0) are the same end")


def test_collectives_in_crossed_order_are_a_deadlock_that_names_ranks_and_nodes():
    program = Program(4)
    first = program.add(ALL_REDUCE, 64, [(0, 1)])
    second = program.add(REDUCE_SCATTER, 64, [(0, 1)])
    for rank, order in ((0, (first, second)), (1, (second, first))):
        for number in order:
            program.join(rank, number, COLLECTIVE, 64)
    assert fail(program) == (
        "deadlock: rank 0 waits at node 1 (all-reduce.0) for rank 1, rank 1 waits at node 1 (reduce-scatter.1) for "
        "rank 0; they come to their transfers in crossed order"
    )


def test_a_cycle_of_dependencies_is_a_deadlock():
    program = Program(4)
    program.nodes[2].add(COMPUTE, "compute.1", [1], duration_ps=5)
    program.nodes[2].add(COMPUTE, "compute.2", [0], duration_ps=5)
    assert fail(program) == "deadlock: rank 2 waits at node 1 (compute.1)"


def test_ranks_that_send_to_each_other_first_wait_forever_unless_messages_are_eager():
    program = Program(4)
    for source, target in ((0, 1), (1, 0)):
        program.add(PERMUTE, 64, [(source, target)])
    program.join(0, 0, SEND, 64)
    program.join(0, 1, RECEIVE, 64)
    program.join(1, 1, SEND, 64)
    program.join(1, 0, RECEIVE, 64)
    assert fail(program).startswith("deadlock: rank 0 waits at node 1 (collective-permute.0) for rank 1, rank 1 waits")
    assert simulate_graph(Plan.of(program.graph(), MACHINE), MACHINE, eager=True).total_ns == 164


def test_alike_ranks_that_all_receive_first_are_named_one_after_another():
    """All four are one class, simulated once."""
    program = Program(4)
    up = program.add(PERMUTE, 64, [(0, 1), (1, 2), (2, 3), (3, 0)])
    back = program.add(PERMUTE, 64, [(1, 0), (2, 1), (3, 2), (0, 3)])
    for rank in range(4):
        for number, op in ((up, RECEIVE), (back, SEND), (back, RECEIVE), (up, SEND)):
            program.join(rank, number, op, 64)
    with pytest.raises(GraphError) as caught:
        simulate_graph(Plan.of(program.alike(), MACHINE), MACHINE, eager=True)
    assert str(caught.value) == (
        "deadlock: rank 0 waits at node 1 (collective-permute.0) for rank 3, rank 3 waits at node 1 "
        "(collective-permute.0) for rank 2, rank 2 waits at node 1 (collective-permute.0) for rank 1, rank 1 waits at "
        "node 1 (collective-permute.0) for rank 0"
    )


def test_crossed_order_is_told_by_transfers_not_by_names():
    """Nodes of other tools' traces can all have one name."""
    program = Program(4)
    numbers = [program.add(ALL_REDUCE, 64, [(0, 1)]) for _ in range(2)]
    for rank, order in ((0, numbers), (1, numbers[::-1])):
        for number in order:
            nodes = program.nodes[rank]
            nodes.add(COLLECTIVE, "sum", range(nodes.size), transfer=number, num_bytes=64)
    assert fail(program) == (
        "deadlock: rank 0 waits at node 1 (sum) for rank 1, rank 1 waits at node 1 (sum) for rank 0; they come to "
        "their transfers in crossed order"
    )
