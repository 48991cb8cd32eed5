"""The graph of a program: columns of nodes that ranks share, and who a node's partners are."""

import numpy as np

from compare.network.graph.graph import (
    COLLECTIVE,
    COMPUTE,
    PERMUTE,
    RECEIVE,
    SEND,
    Graph,
    NodeTableBuilder,
    Transfer,
    list_partners,
)


def two_stages():
    """Ranks 0 and 1 send to 2 and 3 after an all-reduce of their own; two tables for four ranks."""
    groups = ((0, 1), (2, 3))
    transfers = (
        Transfer(key=0, kind="all-reduce", num_bytes=64, groups=groups),
        Transfer(key=1, kind=PERMUTE, num_bytes=32, groups=((0, 2), (1, 3))),
    )
    tables = []
    for op in (SEND, RECEIVE):
        nodes = NodeTableBuilder()
        first = nodes.add(COMPUTE, "compute.1", [], duration_ps=500)
        reduce = nodes.add(COLLECTIVE, "all-reduce.0", [first], transfer=0, num_bytes=64)
        nodes.add(op, "collective-permute.1", [reduce, first], transfer=1, num_bytes=32)
        tables.append(nodes.build())
    return Graph(
        name="two stages", num_ranks=4, tables=tuple(tables), table_of=np.array([0, 0, 1, 1]), transfers=transfers
    )


def test_ranks_that_run_alike_share_their_nodes():
    graph = two_stages()
    assert graph.num_nodes == 4 * 3
    assert graph.table(0) is graph.table(1)
    assert graph.ranks_of(1).tolist() == [2, 3]


def test_ids_count_from_one_and_deps_are_positions():
    table = two_stages().table(3)
    assert table.ids.tolist() == [1, 2, 3]
    assert table.deps_of(2).tolist() == [0, 1]
    assert table.duration_ps.tolist() == [500, 0, 0]


def test_the_transfer_says_who_a_rank_s_partners_are():
    graph = two_stages()
    assert list(list_partners(graph, 3, 1)) == [2]
    assert list(list_partners(graph, 0, 2)) == [2]
    assert list(list_partners(graph, 3, 2)) == [1]
