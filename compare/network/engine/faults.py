"""What a graph cannot run: transfers whose ends do not fit together, and ranks that wait for each other."""

from collections.abc import Callable, Mapping, Sequence

from compare.network.graph.graph import COLLECTIVE, OPS, RECEIVE, SEND, Graph, NodeTable
from compare.timeline.errors import TimingError

_Ends = dict[tuple[int, int], int]
"""(transfer, op) -> node."""


class GraphError(TimingError):
    """A graph that cannot run to its end; the message names ranks and nodes."""


def name_node(table: NodeTable, node: int) -> str:
    """`node 17 (all-reduce.3)`."""
    return f"node {int(table.ids[node])} ({table.names[node]})"


def list_ends(table: NodeTable) -> _Ends:
    """Where a rank with this table takes part in each transfer."""
    ends: _Ends = {}
    for node, (op, transfer) in enumerate(zip(table.ops.tolist(), table.transfers.tolist(), strict=True)):
        if transfer >= 0:
            ends.setdefault((transfer, op), node)
    return ends


def check_graph(graph: Graph) -> None:
    """Raises `GraphError` where a transfer lacks an end, has one too many, or its ends differ in kind or size."""
    ends = [list_ends(table) for table in graph.tables]
    table_of = graph.table_of.tolist()
    by_transfer: list[dict[int, list[tuple[int, int]]]] = [{} for _ in graph.transfers]
    for index, table in enumerate(graph.tables):
        for (place, op), node in ends[index].items():
            by_transfer[place].setdefault(index, []).append((op, int(table.num_bytes[node])))
        _check_twice(graph, index, table)
    seen: set[tuple[object, ...]] = set()
    for number, parts in enumerate(by_transfer):
        transfer = graph.transfers[number]
        key = (id(transfer.groups), transfer.are_pairs, tuple(sorted((k, tuple(v)) for k, v in parts.items())))
        if key not in seen:
            seen.add(key)
            _check_transfer(graph, number, ends, table_of)


def _check_twice(graph: Graph, index: int, table: NodeTable) -> None:
    seen: _Ends = {}
    for node, (op, transfer) in enumerate(zip(table.ops.tolist(), table.transfers.tolist(), strict=True)):
        if transfer >= 0 and seen.setdefault((transfer, op), node) != node:
            first = seen[transfer, op]
            raise GraphError(
                f"rank {int(graph.ranks_of(index)[0])}: {name_node(table, first)} and {name_node(table, node)} are the "
                "same end of one transfer"
            )


def _check_transfer(graph: Graph, number: int, ends: list[_Ends], table_of: list[int]) -> None:
    transfer = graph.transfers[number]
    expected: dict[int, set[int]] = {}
    for group in transfer.groups:
        sides = [(rank, COLLECTIVE) for rank in group]
        if transfer.are_pairs:
            sides = [(group[0], SEND), (group[1], RECEIVE)]
        joined = [(rank, op, ends[table_of[rank]].get((number, op))) for rank, op in sides]
        for rank, op in sides:
            expected.setdefault(rank, set()).add(op)
        present = [(rank, node) for rank, _, node in joined if node is not None]
        for rank, op, node in joined:
            if node is None and present:
                other, there = present[0]
                raise GraphError(
                    f"rank {other}, {name_node(graph.table(other), there)}: waits for rank {rank}, which has no such "
                    f"{OPS[op]}"
                )
        sizes = {int(graph.table(rank).num_bytes[node]): (rank, node) for rank, node in reversed(present)}
        if len(sizes) > 1:
            words = " and ".join(
                f"rank {rank}, {name_node(graph.table(rank), node)}: {size:,} bytes"
                for size, (rank, node) in reversed(sizes.items())
            )
            raise GraphError(f"{words}: the ends of one {transfer.kind} differ in size")
    for rank, index in enumerate(table_of):
        for op in (COLLECTIVE, SEND, RECEIVE):
            node = ends[index].get((number, op))
            if node is not None and op not in expected.get(rank, ()):
                raise GraphError(
                    f"rank {rank}, {name_node(graph.tables[index], node)}: is a {OPS[op]} of {transfer.kind}, whose "
                    "groups have no such rank"
                )


def describe_deadlock(graph: Graph, stuck: Mapping[int, int], list_absent: Callable[[int], Sequence[int]]) -> str:
    """stuck: rank -> the node at which it waits.  list_absent: the ranks that have not come there."""
    rank = next(iter(stuck))
    chain: list[int] = []
    while rank in stuck and rank not in chain:
        chain.append(rank)
        rank = next((other for other in list_absent(rank) if other in stuck), -1)
    cycle = chain[chain.index(rank) :] if rank in chain else chain
    words = [f"rank {each} waits at {name_node(graph.table(each), stuck[each])}" for each in cycle]
    partners = [f" for rank {other}" for other in cycle[1:]] + [f" for rank {rank}" if rank in chain else ""]
    chained = ", ".join(word + partner for word, partner in zip(words, partners, strict=True))
    transfers = {int(graph.table(each).transfers[stuck[each]]) for each in cycle}
    crossed = rank in chain and len(transfers) > 1
    return f"deadlock: {chained}" + "; they come to their transfers in crossed order" * crossed
