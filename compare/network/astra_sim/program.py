"""A graph over all ranks in ASTRA-sim's ticks: its rules of nodes, collectives, sends and receives, event by event.

A rank has one compute node, one node of its CPU, and one collective, send or access to remote memory under way, and
any number of receives; among the nodes that are ready the one with the lowest id goes first.  A compute node of no
length takes a tick.  A send ends when its message arrives, a receive when it has been posted and the message is there.
A node that says nothing ends where it stands, and what waits for it begins when another node of its rank ends.  The
cycles of a rank are the tick at which its last node ends.

Source: `Workload::issue_dep_free_nodes`, `Workload::call`, `HardwareResource`, the feeder's `DependancyResolver`.
Where ASTRA-sim would end with status 0 and without a number, `TimingError` names a rank and its node.
"""

import heapq
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from compare.network.astra_sim.clock import Action, Clock, Tag
from compare.network.astra_sim.custom import CustomPlay
from compare.network.astra_sim.exchange import Transport
from compare.network.astra_sim.options import Options
from compare.network.astra_sim.phases import Phase, Turns, cut_chunks, find_levels, plan_chunks
from compare.network.astra_sim.rank import Chunk, PhaseRun, Rank
from compare.network.astra_sim.remote import PER_NODE, RemoteAccesses
from compare.network.astra_sim.replay import MOST_MESSAGES, Stage, check_machine, make_timers
from compare.network.astra_sim.wires import Handshake, Mailbox, lay_wires
from compare.network.graph.graph import (
    BESIDE,
    BROADCAST,
    COMPUTE,
    HOST,
    RECEIVE,
    REMOTE,
    SEND,
    Graph,
    NodeTable,
    list_partners,
)
from compare.network.machines.collective import Collective
from compare.network.machines.kinds import DOUBLE_BINARY_TREE, KINDS, RING
from compare.network.machines.machine import Algorithm, Machine
from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

Chunks = tuple[tuple[Phase, ...], ...]
_ALL: tuple[int, ...] = ()
_CORE, _HOST, _NETWORK, _FREE = range(4)
"""What a node occupies: a core, the CPU, the network or the memory behind it, nothing."""
_KIND = {"ragged-all-to-all": "all-to-all"}


_USUAL = Options()


@dataclass(frozen=True, slots=True)
class GraphCycles:
    """What ASTRA-sim prints of each rank, in ticks."""

    cycles: tuple[int, ...]
    exposed: tuple[int, ...]
    """Cycles less what its compute nodes take: ASTRA-sim's "exposed communication"."""


def replay_graph(
    graph: Graph, machine: Machine, *, tick_ps: int, unnamed: Container[int] = (), options: Options = _USUAL
) -> GraphCycles:
    """machine: in the ticks of the graph, as many ps as `tick_ps`; with a peak and a memory, of compute whose flops and
    bytes are known the roofline says the length.  unnamed: transfers that no group is named of.

    `TimingError` where ASTRA-sim cannot simulate it, or a rank never ends.
    """
    if machine.num_ranks != graph.num_ranks:
        raise TimingError(f"{graph.name} has {graph.num_ranks:,} ranks, and the machine {machine.num_ranks:,}")
    check_machine(machine)
    if options.remote is not None:
        options.remote.check(graph.num_ranks)
    network = _Network(graph, machine, unnamed, options)
    shared = [_Shared(table, tick_ps, machine, options) for table in graph.tables]
    ranks = [_RankNodes(rank, shared[int(graph.table_of[rank])], network) for rank in range(graph.num_ranks)]
    for each in ranks:
        each.begin()
    if network.clock.is_due_now:
        raise TimingError(f"{graph.name}: a message that takes no tick stands first, at which ASTRA-sim aborts")
    network.clock.run()
    _check_ends(graph, ranks, network.missed)
    return GraphCycles(
        tuple(each.ended or 0 for each in ranks), tuple((each.ended or 0) - each.computed for each in ranks)
    )


class _Network:
    """What the ranks share: the clock, the links, and the algorithms of collectives."""

    def __init__(self, graph: Graph, machine: Machine, unnamed: Container[int], options: Options) -> None:
        self.graph, self.machine, self._unnamed, self.options = graph, machine, unnamed, options
        self.clock = Clock()
        self.timers = make_timers(self.clock)
        mailbox = Mailbox(lay_wires(machine, self.clock, aware=options.aware), self.clock)
        self.transport: Transport = Handshake(mailbox) if options.rendezvous else mailbox
        self.remote = None if options.remote is None else RemoteAccesses(options.remote)
        self._groups: dict[int, dict[int, tuple[int, ...]]] = {}
        self._partners: dict[tuple[int, int], dict[int, int]] = {}
        self._stages: dict[tuple[str, tuple[int, ...], tuple[int, ...] | None], Stage] = {}
        self._plans: dict[tuple[str, tuple[int, ...], tuple[int, ...], int], Chunks] = {}
        self.remembers = machine.queues > 1 or any(
            algorithm.name == DOUBLE_BINARY_TREE for kind in KINDS for algorithm in machine.algorithms.of(kind)
        )
        """Whether a collective does not begin as the first of its rank did."""
        self._messages = 0
        self._issued: list[dict[tuple[int, ...], int]] = [{} for _ in range(graph.num_ranks)]
        """Chunks of collectives, of each rank and group."""
        self._group_numbers: dict[tuple[int, ...], int] = {}
        self._first_issued: dict[int, tuple[int, int]] = {}
        self.missed = ""
        """Why the ranks of a collective that names no group miss each other."""

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
        dims = None
        if index in self._unnamed and len(group) < self.graph.num_ranks:
            dims = self.machine.list_dims(group)
        collective = Collective(kind=kind, num_bytes=num_bytes, group=None if dims else group, dims=dims)
        collective.check(self.machine)
        if kind in self.options.custom:
            self._start_custom(rank, collective, group, index, end)
            return
        if (kind, group, dims) not in self._stages:
            levels = find_levels(self.machine, collective)
            self._stages[kind, group, dims] = Stage(self.machine, collective.group, levels, self.transport, self.timers)
        stage = self._stages[kind, group, dims]
        chunks = self._plan(collective, turns)
        self._messages += len(chunks) * sum(stage.count_messages(phase, rank.number) for phase in chunks[0])
        if self._messages > MOST_MESSAGES:
            raise TimingError(f"{self.graph.name} sends more than {MOST_MESSAGES:,} messages; so many are replayed")
        rank.issue(chunks, tag=self._number(index, rank.number, len(chunks)), enter=stage.enter, end=end)

    def _start_custom(
        self, rank: Rank, collective: Collective, group: tuple[int, ...], index: int, end: Action
    ) -> None:
        """In one piece, behind what holds the first queue of the first dim."""
        pieces, _ = cut_chunks(self.machine, collective)
        if pieces > 1:
            raise TimingError(
                f"{self.graph.name}: a custom {collective.kind} is simulated in one piece, and ASTRA-sim waits for "
                f"{pieces}; write preferred-dataset-splits 1"
            )
        if collective.dims is not None or index in self._unnamed:
            group = tuple(range(self.graph.num_ranks))

        def enter(rank: Rank, _: Chunk, __: Phase, leave: Action) -> PhaseRun:
            return CustomPlay(
                self.options.custom[collective.kind],
                group,
                rank.number,
                transport=self.transport,
                timer=self.timers[rank.number],
                leave=leave,
                one_by_one=self.options.aware,
            )

        phase = Phase(
            kind=collective.kind, level=0, algorithm=Algorithm(RING), num_bytes=collective.num_bytes, queue=0, step=1
        )
        rank.issue(((phase,),), tag=self._number(index, rank.number, 1), enter=enter, end=end)

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
            return plan_chunks(self.machine, collective, turns)
        key = collective.kind, collective.group or (), collective.dims or (), collective.num_bytes
        if key not in self._plans:
            self._plans[key] = plan_chunks(self.machine, collective)
        return self._plans[key]


class _Shared:
    """What the ranks of a table share."""

    def __init__(self, table: NodeTable, tick_ps: int, machine: Machine, options: Options) -> None:
        self.ops: list[int] = table.ops.tolist()
        self.transfers: list[int] = table.transfers.tolist()
        self.sizes: list[int] = table.num_bytes.tolist()
        self.ticks: list[int] = np.maximum(table.duration_ps // tick_ps, 1).tolist()
        self.is_instant = [op == BESIDE and not options.replays for op in self.ops]
        self.holds = [self._place(node, op) for node, op in enumerate(self.ops)]
        """What each node occupies."""
        self.num_deps: list[int] = np.diff(table.dep_starts).tolist()
        self.users: list[list[int]] = [[] for _ in self.ops]
        for node in range(table.size):
            for dep in table.deps_of(node).tolist():
                self.users[dep].append(node)
        self.is_plain = not any(op in (HOST, REMOTE, BESIDE) for op in self.ops)
        """Whether it has nothing at which ASTRA-sim's statistics fail."""
        if machine.peak_flops_per_ns is not None and not options.replays:
            for node in np.flatnonzero((table.ops == COMPUTE) & ~np.isnan(table.flops)).tolist():
                self._limit(node, float(table.flops[node]), float(table.memory_bytes[node]), machine)

    def _place(self, node: int, op: int) -> int:
        if op == BESIDE:
            return _NETWORK if self.is_instant[node] else _FREE
        return {COMPUTE: _CORE, HOST: _HOST, RECEIVE: _FREE}.get(op, _NETWORK)

    def _limit(self, node: int, flops: float, num_bytes: float, machine: Machine) -> None:
        """By the roofline; a node without bytes ends where it stands."""
        if num_bytes == 0:
            self.is_instant[node] = True
            return
        if not flops > 0 or not num_bytes > 0 or machine.memory_bytes_per_ns is None:
            raise TimingError(
                "the roofline needs num_ops and tensor_size from 1, and local-mem-bw: ASTRA-sim has no length"
            )
        assert machine.peak_flops_per_ns is not None
        rate = min(machine.memory_bytes_per_ns * 1e9 * (flops / num_bytes), machine.peak_flops_per_ns * 1e9)
        self.ticks[node] = int(flops / rate * 1e9)


class _RankNodes:
    """One rank: which of its nodes are ready, under way, and left."""

    def __init__(self, number: int, shared: _Shared, network: _Network) -> None:
        self.number, self._shared, self._network = number, shared, network
        self._rank = Rank(number, network.machine.slots)
        self._turns = Turns(network.machine) if network.remembers else None
        self._timer = network.timers[number]
        self._waits = shared.num_deps.copy()
        self.ready: dict[int, list[int]] = {_CORE: [], _HOST: [], _NETWORK: [], _FREE: []}
        """By what they occupy."""
        self._busy: set[int] = set()
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
        if not self.left:
            if not self._shared.is_plain:
                raise TimingError(f"rank {self.number} has nothing that takes time, at which ASTRA-sim aborts")
            self.ended = self._network.clock.now

    def _become_ready(self, node: int) -> None:
        heapq.heappush(self.ready[self._shared.holds[node]], node)

    def _issue_ready(self) -> None:
        """Those that have what they need, by ascending id; what an instant node lets begin waits for the next time."""
        nodes, self.ready[_FREE] = self.ready[_FREE], []
        for place in (_CORE, _HOST, _NETWORK):
            is_free, waiting = place not in self._busy, self.ready[place]
            while is_free and waiting:
                nodes.append(heapq.heappop(waiting))
                is_free = self._shared.is_instant[nodes[-1]]
        for node in sorted(nodes):
            if self._shared.is_instant[node]:
                self._finish(node)
            else:
                self._issue(node)

    def _issue(self, node: int) -> None:
        shared, network, options = self._shared, self._network, self._network.options
        op, index, size, ticks = shared.ops[node], shared.transfers[node], shared.sizes[node], shared.ticks[node]
        end = partial(self._end, node)
        self.under_way.add(node)
        self._busy.add(self._shared.holds[node])
        if op == COMPUTE or (options.replays and op != HOST):
            self.computed += ticks
        if op in (COMPUTE, HOST) or options.replays:
            self._timer.after(ticks, end)
        elif op == REMOTE:
            if network.remote is None:
                raise TimingError(f"{self._words(node)}: memory.json has no remote memory, at which ASTRA-sim ends")
            network.remote.issue(self.number, self._timer, size, end)
        elif op == RECEIVE:
            source = network.find_partner(index, self.number, op)
            network.transport.receive((-1, index), source, self.number, size, end)
        elif op == SEND:
            target = network.find_partner(index, self.number, op)
            network.transport.send((-1, index), self.number, target, size, end)
        elif network.graph.transfers[index].kind == BROADCAST:
            self._timer.after(ticks, end)
        else:
            network.start(self._rank, self._turns, index, size, end)

    def _end(self, node: int) -> None:
        self._busy.discard(self._shared.holds[node])
        self.under_way.remove(node)
        self._finish(node)
        self._issue_ready()
        if not self.left:
            self._check_statistics(node)
            self.ended = self._network.clock.now

    def _finish(self, node: int) -> None:
        self.left -= 1
        for user in self._shared.users[node]:
            self._waits[user] -= 1
            if not self._waits[user]:
                self._become_ready(user)

    def _check_statistics(self, node: int) -> None:
        """`TimingError` where ASTRA-sim aborts: its statistics of other nodes than compute and communication fail, and
        where the last node is a message nothing catches that."""
        op, index, options = self._shared.ops[node], self._shared.transfers[node], self._network.options
        if self._shared.is_plain or options.replays:
            return
        if op == REMOTE and options.remote is not None and options.remote.kind == PER_NODE:
            raise TimingError(
                f"{self._words(node)} is the last of its rank: behind it ASTRA-sim reads memory that it has freed"
            )
        if op in (SEND, RECEIVE) or (index >= 0 and self._network.graph.transfers[index].kind in options.custom):
            raise TimingError(
                f"{self._words(node)} is the last of a rank with work of the CPU, accesses to memory or INVALID nodes: "
                "ASTRA-sim aborts"
            )

    def _words(self, node: int) -> str:
        table = self._network.graph.table(self.number)
        return f"rank {self.number}, node {int(table.ids[node])} {quote(table.names[node])}"


def _check_ends(graph: Graph, ranks: Sequence[_RankNodes], missed: str) -> None:
    """`TimingError` with the first rank that never ends, and what it waits for."""
    stuck = [each for each in ranks if each.ended is None]
    if not stuck:
        return
    first = next((each for each in stuck if each.under_way), stuck[0])
    table = graph.table(first.number)
    node = min(first.under_way, default=min((min(each) for each in first.ready.values() if each), default=0))
    partners = list_partners(graph, first.number, node) if table.transfers[node] >= 0 else ()
    others = [rank for rank in partners if ranks[rank].ended is None]
    whom = f", for rank {', '.join(map(str, others[:8]))}" if others else ""
    if not first.under_way:
        whom = ", which nothing lets begin: it waits for a node that takes no time"
    raise TimingError(
        f"{len(stuck):,} of {graph.num_ranks:,} ranks never end: rank {first.number} waits in node "
        f"{int(table.ids[node])} {quote(table.names[node])}{whom}{missed} (ASTRA-sim ends with status 0)"
    )
