"""A graph several times side by side, as an outer data-parallel axis without communication repeats a program."""

from dataclasses import replace

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.network.graph.graph import Graph


def repeat_graph(graph: Graph, times: int) -> Graph:
    """The ranks of copy i are those of the graph + i × its number of ranks; all copies share their nodes."""
    if times == 1:
        return graph
    size = graph.num_ranks
    shifted: dict[int, Groups] = {}
    for transfer in graph.transfers:
        if id(transfer.groups) not in shifted:
            shifted[id(transfer.groups)] = tuple(
                tuple(rank + copy * size for rank in group) for copy in range(times) for group in transfer.groups
            )
    transfers = tuple(replace(each, groups=shifted[id(each.groups)]) for each in graph.transfers)
    table_of = np.tile(graph.table_of, times)
    return replace(graph, num_ranks=size * times, table_of=table_of, transfers=transfers)
