"""The graph of a program over all ranks: nodes in columns, shared by ranks that run alike, and the transfers they join.

Ranks are numbered as a machine numbers them (dim 0 fastest; of a TPU slice x, y, z, core, slice).  A node says what its
rank does: it computes, joins a collective, sends or receives.  A transfer says what all ranks do together: one
execution of a collective over its groups, or of a permute over its pairs.  So ranks that run alike share one table of
nodes: who a rank's partners are stands in the transfer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.timeline.arrays import Floats, Ints

COMPUTE, COLLECTIVE, SEND, RECEIVE, HOST, REMOTE, BESIDE = range(7)
"""What a node does (`NodeTable.ops`): HOST computes on the CPU, REMOTE reads or writes remote memory, BESIDE lasts its
duration and occupies nothing."""
OPS = ("compute", "collective", "send", "receive", "work of the CPU", "memory access", "wait")
PERMUTE, BROADCAST = "collective-permute", "collective-broadcast"
PS = 1000
"""Picoseconds of a nanosecond."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transfer:
    """One execution of a collective or of a permute, or a message, over all ranks that take part."""

    key: int
    """Its number among the communication executions of the program, from 0; the tag of its sends and receives."""
    kind: str
    """XLA's word, like `all-reduce` or `collective-permute`; a message between two ranks is a permute of one pair."""
    num_bytes: int
    """A rank's input: of an all-gather its shard, of the others the whole (ASTRA-sim's `comm_size`)."""
    groups: Groups
    """Of a collective, ranks in the order of their ring; of a permute, pairs (source, target).  Transfers over the same
    groups share one object, so that what depends on the groups is computed once."""
    collective: str = ""
    """The row of the collectives table that it executes; "" in graphs of other tools."""
    priority: int = 0
    """Higher goes first, where the machine's policy is `priority`."""

    @property
    def are_pairs(self) -> bool:
        return self.kind == PERMUTE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeTable:
    """The nodes of one rank, or of all ranks that run alike.  Entry i of a column is node i, in order of issue."""

    ids: Ints
    """Unique, ascending: a graph's file names nodes by them.  Among ready nodes the lowest goes first."""
    ops: Ints
    """COMPUTE, COLLECTIVE, SEND, RECEIVE, HOST, REMOTE or BESIDE."""
    duration_ps: Ints
    """Of what does not communicate, and of a broadcast, for which there is no algorithm; 0 for what else communicates,
    whose length the network says."""
    transfers: Ints
    """Index into `Graph.transfers`; -1 for what does not communicate."""
    num_bytes: Ints
    """What this rank says of its transfer (another number than `Transfer.num_bytes` is a fault), or of its access to
    remote memory; 0 for compute."""
    dep_starts: Ints
    """Node i waits for the nodes `deps[dep_starts[i]:dep_starts[i + 1]]`; one entry more than there are nodes."""
    deps: Ints
    """Positions of nodes in this table, ascending for each node."""
    names: tuple[str, ...]
    flops: Floats
    """Of compute, for rooflines; NaN where it is not known."""
    memory_bytes: Floats
    """Of compute, read and written; NaN where it is not known."""
    work: Floats
    """(nodes, 3): matrix_flops, vector_ops, memory_bytes of what a compiled program computes, for joules; else NaN."""

    @property
    def size(self) -> int:
        return int(self.ops.size)

    def deps_of(self, node: int) -> Ints:
        """The positions of the nodes that one waits for."""
        return self.deps[self.dep_starts[node] : self.dep_starts[node + 1]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """A program over all ranks."""

    name: str
    num_ranks: int
    tables: tuple[NodeTable, ...]
    table_of: Ints
    """(num_ranks,): index into `tables`."""
    transfers: tuple[Transfer, ...]

    def table(self, rank: int) -> NodeTable:
        """The nodes of one rank."""
        return self.tables[int(self.table_of[rank])]

    @property
    def num_nodes(self) -> int:
        """Over all ranks."""
        return sum(self.tables[index].size for index in self.table_of.tolist())

    def ranks_of(self, table: int) -> Ints:
        """The ranks that share a table."""
        return np.flatnonzero(self.table_of == table)


class NodeTableBuilder:
    """Collects nodes, one call each, in order of issue; ids are 1, 2, 3, … unless given."""

    def __init__(self) -> None:
        self._columns: tuple[list[int], ...] = ([], [], [], [], [])
        self._rates: tuple[list[float], ...] = ([], [])
        self._work: dict[int, Floats] = {}
        self._names: list[str] = []
        self._deps: list[int] = []
        self._starts: list[int] = [0]

    @property
    def size(self) -> int:
        return len(self._names)

    def add(
        self,
        op: int,
        name: str,
        deps: Iterable[int],
        *,
        transfer: int = -1,
        num_bytes: int = 0,
        duration_ps: int = 0,
        node_id: int | None = None,
        flops: float = np.nan,
        memory_bytes: float = np.nan,
    ) -> int:
        """Returns the node's position."""
        position = self.size
        row = (position + 1 if node_id is None else node_id, op, duration_ps, transfer, num_bytes)
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        for rate, number in zip(self._rates, (flops, memory_bytes), strict=True):
            rate.append(number)
        self._names.append(name)
        self._deps += sorted(deps)
        self._starts.append(len(self._deps))
        return position

    def add_work(self, node: int, work: Floats) -> None:
        """Adds (3,) to what a node computes."""
        self._work[node] = self._work.get(node, np.zeros(3)) + work

    def build(self) -> NodeTable:
        ids, ops, durations, transfers, sizes = (np.array(column, np.int64) for column in self._columns)
        flops, memory_bytes = (np.array(column, np.float64) for column in self._rates)
        return NodeTable(
            ids=ids,
            ops=ops,
            duration_ps=durations,
            transfers=transfers,
            num_bytes=sizes,
            dep_starts=np.array(self._starts, np.int64),
            deps=np.array(self._deps, np.int64),
            names=tuple(self._names),
            flops=flops,
            memory_bytes=memory_bytes,
            work=np.array([self._work.get(node, np.full(3, np.nan)) for node in range(self.size)]).reshape(-1, 3),
        )


def list_partners(graph: Graph, rank: int, node: int) -> Iterator[int]:
    """The other ranks of a communicating node: of its group, or the targets (of a send) or sources (of a receive)."""
    table = graph.table(rank)
    transfer = graph.transfers[int(table.transfers[node])]
    op = int(table.ops[node])
    for group in transfer.groups:
        if op == COLLECTIVE and rank in group:
            yield from (other for other in group if other != rank)
        elif op == SEND and group[0] == rank:
            yield group[1]
        elif op == RECEIVE and group[1] == rank:
            yield group[0]
