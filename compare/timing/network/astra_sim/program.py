"""A graph over all ranks in ASTRA-sim's ticks: its rules of nodes, collectives, sends and receives, event by event.

A rank has one compute node and one collective or send under way, and any number of receives; among the nodes that are
ready the one with the lowest id goes first.  A compute node of no length takes a tick.  A send ends when its message
arrives, a receive when it has been posted and the message is there.  The cycles of a rank are the tick at which its
last node ends.

Source: `Workload::issue_dep_free_nodes`, `Workload::call`, `HardwareResource`, the feeder's `DependancyResolver`.
Where ASTRA-sim would end with status 0 and without a number, `TimingError` names a rank and its node.
"""

import heapq
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from compare.timing.errors import TimingError
from compare.timing.network.astra_sim.clock import Action, Clock, Tag
from compare.timing.network.astra_sim.phases import Phase, Turns, find_levels, plan_chunks
from compare.timing.network.astra_sim.rank import Rank
from compare.timing.network.astra_sim.replay import MOST_MESSAGES, Stage, check_machine, make_timers
from compare.timing.network.astra_sim.wires import FreeWires, Mailbox, SharedWires, Wires
from compare.timing.network.graph.graph import COMPUTE, RECEIVE, SEND, Graph, NodeTable, list_partners
from compare.timing.network.machines.collective import Collective
from compare.timing.network.machines.machine import DOUBLE_BINARY_TREE, KINDS, Machine
from meshes.process.one_line import quote

Chunks = tuple[tuple[Phase, ...], ...]
BROADCAST = "collective-broadcast"
_ALL: tuple[int, ...] = ()
_KIND = {"ragged-all-to-all": "all-to-all"}


@dataclass(frozen=True, slots=True)
class GraphCycles:
    """What ASTRA-sim prints of each rank, in ticks."""

    cycles: tuple[int, ...]
    exposed: tuple[int, ...]
    """Cycles less what its compute nodes take: ASTRA-sim's "exposed communication"."""


def play_graph(
    graph: Graph, machine: Machine, *, tick_ps: int, unnamed: Container[int] = (), aware: bool = False
) -> GraphCycles:
    """machine: in the ticks of the graph, as many ps as `tick_ps`.  unnamed: transfers that no group is named of.

    `TimingError` where ASTRA-sim cannot play it, or a rank never ends.
    """
    if machine.num_ranks != graph.num_ranks:
        raise TimingError(f"{graph.name} has {graph.num_ranks:,} ranks, and the machine {machine.num_ranks:,}")
    check_machine(machine)
    network = _Network(graph, machine, unnamed, aware=aware)
    shared = [_Shared(table, tick_ps) for table in graph.tables]
    ranks = [_RankNodes(rank, shared[int(graph.table_of[rank])], network) for rank in range(graph.num_ranks)]
    for each in ranks:
        each.begin()
    if network.clock.is_due_now:
        raise TimingError(f"{graph.name}: a message that takes no tick stands first, at which ASTRA-sim aborts")
    network.clock.run()
    _check_ends(graph, ranks, network.missed)
    return GraphCycles(
        tuple(each.ended or 0 for each in ranks), tuple((each.ended or 0) - each.computed for each in ranks)
    )  # fmt: skip


class _Network:
    """What the ranks share: the clock, the links, and the algorithms of collectives."""

    def __init__(self, graph: Graph, machine: Machine, unnamed: Container[int], *, aware: bool) -> None:
        self.graph, self._machine, self._unnamed = graph, machine, unnamed
        self.clock = Clock()
        self.timers = make_timers(self.clock)
        wires: Wires = SharedWires(machine, self.clock) if aware else FreeWires(machine, self.clock)
        self.mail = Mailbox(wires, self.clock)
        self._groups: dict[int, dict[int, tuple[int, ...]]] = {}
        self._partners: dict[tuple[int, int], dict[int, int]] = {}
        self._stages: dict[tuple[str, tuple[int, ...]], Stage] = {}
        self._plans: dict[tuple[str, tuple[int, ...], int], Chunks] = {}
        self._remembers = machine.queues > 1 or any(
            algorithm.name == DOUBLE_BINARY_TREE for kind in KINDS for algorithm in machine.algorithms.of(kind)
        )
        self._messages = 0
        self._issued: list[dict[tuple[int, ...], int]] = [{} for _ in range(graph.num_ranks)]
        """Chunks of collectives, of each rank and group."""
        self._group_numbers: dict[tuple[int, ...], int] = {}
        self._first_issued: dict[int, tuple[int, int]] = {}
        self.missed = ""
        """Why the ranks of a collective that names no group miss each other."""

    def make_turns(self) -> Turns | None:
        """What a rank remembers from one collective to the next; `None` where each begins as the first did."""
        return Turns(self._machine) if self._remembers else None

    def make_rank(self, number: int) -> Rank:
        return Rank(number, self._machine.slots)

    def find_group(self, index: int, rank: int) -> tuple[int, ...]:
        """The group of a rank in a collective."""
        groups = self.graph.transfers[index].groups
        if id(groups) not in self._groups:
            self._groups[id(groups)] = {member: group for group in groups for member in group}
        return self._groups[id(groups)][rank]

    def find_partner(self, index: int, rank: int, op: int) -> int:
        """The target of a sender, or the source of a receiver."""
        groups = self.graph.transfers[index].groups
        if (id(groups), op) not in self._partners:
            pairs = groups if op == SEND else [(target, source) for source, target in groups]
            self._partners[id(groups), op] = {first: second for first, second in pairs}
        return self._partners[id(groups), op][rank]

    def start(self, rank: Rank, turns: Turns | None, index: int, num_bytes: int, end: Action) -> None:
        """A rank issues its part of a collective."""
        transfer = self.graph.transfers[index]
        kind, group = _KIND.get(transfer.kind, transfer.kind), self.find_group(index, rank.number)
        collective = Collective(kind=kind, num_bytes=num_bytes, group=group)
        if (kind, group) not in self._stages:
            collective.check(self._machine)
            levels = find_levels(self._machine, collective)
            self._stages[kind, group] = Stage(self._machine, group, levels, self.mail, self.timers)
        stage = self._stages[kind, group]
        chunks = self._plan(collective, turns)
        self._messages += len(chunks) * sum(stage.count_messages(phase, rank.number) for phase in chunks[0])
        if self._messages > MOST_MESSAGES:
            raise TimingError(f"{self.graph.name} sends more than {MOST_MESSAGES:,} messages; so many are replayed")
        rank.issue(chunks, tag=self._number(index, rank.number, len(chunks)), enter=stage.enter, end=end)

    def _number(self, index: int, rank: int, chunks: int) -> Tag:
        """By what the members of a collective know each other: how many chunks the rank has issued in its group.

        Where no group is named, how many it has issued at all, so that ranks whose groups differ miss each other.
        """
        issued = self._issued[rank]
        counts = issued.setdefault(_ALL, 0), issued.setdefault(self.find_group(index, rank), 0)
        issued[_ALL] += chunks
        issued[self.find_group(index, rank)] += chunks
        if index not in self._unnamed:
            return self._group_numbers.setdefault(self.find_group(index, rank), len(self._group_numbers) + 1), counts[1]
        first, number = self._first_issued.setdefault(index, (rank, counts[0]))
        if number != counts[0]:
            self.missed = self.missed or (
                f"; {self.graph.transfers[index].kind} {index} names no group: rank {first} has issued {number} chunks "
                f"of collectives before it and rank {rank} {counts[0]}, by which they know it"
            )
        return 0, counts[0]

    def _plan(self, collective: Collective, turns: Turns | None) -> Chunks:
        if turns is not None:
            return plan_chunks(self._machine, collective, turns)
        key = collective.kind, collective.group or (), collective.num_bytes
        if key not in self._plans:
            self._plans[key] = plan_chunks(self._machine, collective)
        return self._plans[key]


class _Shared:
    """What the ranks of a table share."""

    def __init__(self, table: NodeTable, tick_ps: int) -> None:
        self.ops: list[int] = table.ops.tolist()
        self.transfers: list[int] = table.transfers.tolist()
        self.sizes: list[int] = table.num_bytes.tolist()
        self.ticks: list[int] = np.maximum(table.duration_ps // tick_ps, 1).tolist()
        self.num_deps: list[int] = np.diff(table.dep_starts).tolist()
        self.users: list[list[int]] = [[] for _ in self.ops]
        for node in range(table.size):
            for dep in table.deps_of(node).tolist():
                self.users[dep].append(node)


class _RankNodes:
    """One rank: which of its nodes are ready, under way, and left."""

    def __init__(self, number: int, shared: _Shared, network: _Network) -> None:
        self.number, self._shared, self._network = number, shared, network
        self._rank, self._turns = network.make_rank(number), network.make_turns()
        self._timer = network.timers[number]
        self._waits = shared.num_deps.copy()
        self._to_compute: list[int] = []
        self._to_communicate: list[int] = []
        self._to_receive: list[int] = []
        self._computes = self._communicates = False
        self.left = len(shared.ops)
        self.under_way: set[int] = set()
        self.computed = 0
        """Ticks."""
        self.ended: int | None = None

    def begin(self) -> None:
        for node, waits in enumerate(self._waits):
            if not waits:
                self._become_ready(node)
        self._issue_ready()

    def _become_ready(self, node: int) -> None:
        op = self._shared.ops[node]
        ready = {COMPUTE: self._to_compute, RECEIVE: self._to_receive}.get(op, self._to_communicate)
        heapq.heappush(ready, node)

    def _issue_ready(self) -> None:
        """Those that have what they need, by ascending id."""
        nodes, self._to_receive = self._to_receive, []
        if self._to_compute and not self._computes:
            nodes.append(heapq.heappop(self._to_compute))
        if self._to_communicate and not self._communicates:
            nodes.append(heapq.heappop(self._to_communicate))
        for node in sorted(nodes):
            self._issue(node)

    def _issue(self, node: int) -> None:
        shared, network = self._shared, self._network
        op, index, size = shared.ops[node], shared.transfers[node], shared.sizes[node]
        end = partial(self._end, node)
        self.under_way.add(node)
        if op == COMPUTE:
            self._computes = True
            self.computed += shared.ticks[node]
            self._timer.after(shared.ticks[node], end)
        elif op == RECEIVE:
            source = network.find_partner(index, self.number, op)
            network.mail.receive((-1, index), source, self.number, size, end)
        else:
            self._communicates = True
            if op == SEND:
                target = network.find_partner(index, self.number, op)
                network.mail.send((-1, index), self.number, target, size, end)
            elif network.graph.transfers[index].kind == BROADCAST:
                self._timer.after(shared.ticks[node], end)
            else:
                network.start(self._rank, self._turns, index, size, end)

    def _end(self, node: int) -> None:
        op = self._shared.ops[node]
        if op == COMPUTE:
            self._computes = False
        elif op != RECEIVE:
            self._communicates = False
        self.under_way.remove(node)
        self.left -= 1
        for user in self._shared.users[node]:
            self._waits[user] -= 1
            if not self._waits[user]:
                self._become_ready(user)
        self._issue_ready()
        if not self.left:
            self.ended = self._network.clock.now


def _check_ends(graph: Graph, ranks: Sequence[_RankNodes], missed: str) -> None:
    """`TimingError` with the first rank that never ends, and what it waits for."""
    stuck = [each for each in ranks if each.ended is None]
    if not stuck:
        return
    first = next((each for each in stuck if each.under_way), stuck[0])
    node, table = min(first.under_way), graph.table(first.number)
    others = [rank for rank in list_partners(graph, first.number, node) if ranks[rank].ended is None]
    whom = f", for rank {', '.join(map(str, others[:8]))}" if others else ""
    raise TimingError(
        f"{len(stuck):,} of {graph.num_ranks:,} ranks never end: rank {first.number} waits in node "
        f"{int(table.ids[node])} {quote(table.names[node])}{whom}{missed} (ASTRA-sim ends with status 0)"
    )
