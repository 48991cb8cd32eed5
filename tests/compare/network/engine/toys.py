"""Small graphs and machines, worked by hand: 1 byte a ns, 100 ns a hop."""

from dataclasses import replace

import numpy as np

from compare.network.graph.graph import COLLECTIVE, COMPUTE, PERMUTE, RECEIVE, SEND, Graph, NodeTableBuilder, Transfer
from compare.network.machines.machine import Algorithms, Dim, Machine
from compare.network.machines.words import parse_algorithm


def machine_of(*dims, algorithms=None, rates=None, **rest):
    """dims: (kind, size) pairs."""
    speeds = rates or (1.0,) * len(dims)
    made = tuple(
        Dim(kind=kind, size=size, bytes_per_ns=rate, latency_ns=100.0)
        for (kind, size), rate in zip(dims, speeds, strict=True)
    )
    words = algorithms or ("ring",) * len(dims)
    return Machine(dims=made, algorithms=Algorithms.alike(tuple(map(parse_algorithm, words))), **rest)


class Program:
    """Nodes of each rank, in order; `after`: positions of nodes, by default the one before."""

    def __init__(self, num_ranks):
        self.nodes = [NodeTableBuilder() for _ in range(num_ranks)]
        self.transfers = []

    def compute(self, rank, ns, *, after=None):
        name = f"compute.{self.nodes[rank].size + 1}"
        return self.nodes[rank].add(COMPUTE, name, self._after(rank, after), duration_ps=ns * 1000)

    def collective(self, kind, num_bytes, *groups, after=None, priority=0):
        """On all ranks of the groups."""
        number = self.add(kind, num_bytes, groups, priority=priority)
        for group in groups:
            for rank in group:
                self.join(rank, number, COLLECTIVE, num_bytes, after=after)
        return number

    def messages(self, num_bytes, *pairs, after=None):
        """All of one permute."""
        number = self.add(PERMUTE, num_bytes, pairs)
        before = [nodes.size for nodes in self.nodes]
        for source, target in pairs:
            for rank, op in ((source, SEND), (target, RECEIVE)):
                deps = list(range(before[rank]))[-1:] if after is None else after
                self.join(rank, number, op, num_bytes, after=deps)
        return number

    def add(self, kind, num_bytes, groups, *, priority=0):
        number = len(self.transfers)
        self.transfers.append(
            Transfer(key=number, kind=kind, num_bytes=num_bytes, groups=tuple(groups), priority=priority)
        )
        return number

    def join(self, rank, number, op, num_bytes, *, after=None):
        kind = self.transfers[number].kind
        deps = self._after(rank, after)
        return self.nodes[rank].add(op, f"{kind}.{number}", deps, transfer=number, num_bytes=num_bytes)

    def graph(self):
        for nodes in self.nodes:
            if not nodes.size:
                nodes.add(COMPUTE, "compute.1", (), duration_ps=1)
        return Graph(
            name="toy",
            num_ranks=len(self.nodes),
            tables=tuple(nodes.build() for nodes in self.nodes),
            table_of=np.arange(len(self.nodes)),
            transfers=tuple(self.transfers),
        )

    def alike(self):
        """The graph, whose ranks all have the nodes of rank 0."""
        graph = self.graph()
        return replace(graph, tables=graph.tables[:1], table_of=graph.table_of * 0)

    def _after(self, rank, after):
        size = self.nodes[rank].size
        return list(range(size))[-1:] if after is None else list(after)


def exchange_on_4x4x4(num_bytes):
    """Every rank of 4×4×4 sends to each other one: a permute for each distance (x, y, z)."""
    program = Program(64)
    places = [(x, y, z) for z in range(4) for y in range(4) for x in range(4)]
    for away in places[1:]:
        targets = [tuple((a + b) % 4 for a, b in zip(place, away, strict=True)) for place in places]
        program.messages(num_bytes, *[(rank, x + 4 * y + 16 * z) for rank, (x, y, z) in enumerate(targets)], after=[])
    return program
