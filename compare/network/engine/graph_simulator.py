"""Simulates a graph on a machine: every class of ranks on its own clock, transfers as flows over shared links.

A rank computes one node at a time, and its CPU another; whatever communicates runs beside that.  Among ready nodes
the lowest goes first.  A collective begins when its last member has come; a message when its sender has (`eager`), or
both its ends.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from compare.network.engine.classes import ClassGroup
from compare.network.engine.faults import GraphError, describe_deadlock, list_ends
from compare.network.engine.flows import Flow, SharedLinks
from compare.network.engine.graph_layout import Plan
from compare.network.engine.links import Links
from compare.network.graph.graph import COLLECTIVE, COMPUTE, HOST, RECEIVE, SEND, NodeTable, list_partners
from compare.network.machines.machine import Machine
from compare.schedule.engine import Engine, Instance
from compare.timeline.arrays import Floats

Uses = tuple[tuple[int, float], ...]
Phase = tuple[int, float, float, Uses]
"""(dim, ns before its links are needed, ns on them when it has them to itself, (link, fraction of it))."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedGraph:
    """When each node of each class was: began (its dependencies were done), joined (its partners had come), ended."""

    plan: Plan
    machine: Machine
    starts: tuple[Floats, ...]
    joined: tuple[Floats, ...]
    ends: tuple[Floats, ...]

    def table(self, index: int) -> NodeTable:
        """The nodes of one class."""
        return self.plan.graph.table(int(self.plan.classes.first[index]))

    @property
    def total_ns(self) -> float:
        return max((float(end.max(initial=0.0)) for end in self.ends), default=0.0)

    def rank_ends(self) -> Floats:
        """(ranks,): when each rank ended its last node."""
        return np.array([end.max(initial=0.0) for end in self.ends])[self.plan.classes.of]


@dataclass(slots=True, eq=False)
class PhasedInstance(Instance):
    """One whose chunks pass through phases."""

    group: ClassGroup
    priority: int
    phases: tuple[Phase, ...]
    launch_ns: float = 0.0
    """Before its first chunk."""
    chunks_left: int = 1
    waiting: dict[int, deque[int]] = field(default_factory=dict)
    """The phases that chunks wait for, before each dim."""
    free: dict[int, int] = field(default_factory=dict)
    """Slots of each dim."""


class GraphSimulator(Engine[PhasedInstance]):
    def __init__(self, plan: Plan, machine: Machine, *, eager: bool, scale_compute: float):
        self.tables = [plan.graph.table(rank) for rank in plan.classes.first.tolist()]
        super().__init__([table.size for table in self.tables])
        self.plan, self.machine, self.eager = plan, machine, eager
        self.links = Links.of(machine)
        self.shared, self.slots = SharedLinks(), machine.slots
        self.phases: dict[tuple[int, int], list[tuple[Phase, ...]]] = {}
        self.queue: list[PhasedInstance] = []
        """Instances that wait for a turn, where the machine limits how many are in flight."""
        self.in_flight = [0] * len(self.tables)
        shared_parts = {id(table): _TableParts.of(table, machine, scale_compute) for table in self.tables}
        self.parts = [shared_parts[id(table)] for table in self.tables]
        self.left = [list(parts.num_deps) for parts in self.parts]
        self.ready: list[dict[int, list[int]]] = [{COMPUTE: [], HOST: []} for _ in self.tables]
        """Of each class, by the core that they run on."""
        self.computing: list[set[int]] = [set() for _ in self.tables]

    def simulate(self) -> SimulatedGraph:
        for index, parts in enumerate(self.parts):
            for node in parts.roots:
                self._make_ready(index, node)
        for index in range(len(self.parts)):
            self._compute(index, COMPUTE)
            self._compute(index, HOST)
        self.run()
        self._check_ended()
        return SimulatedGraph(
            self.plan, self.machine, *(tuple(map(np.array, times)) for times in (self.starts, self.joined, self.ends))
        )

    # Ranks

    def _make_ready(self, index: int, node: int) -> None:
        op = self.parts[index].ops[node]
        if op in self.ready[index]:
            heapq.heappush(self.ready[index][op], node)
        elif self.parts[index].transfers[node] < 0:
            self.starts[index][node] = self.joined[index][node] = self.now
            self.at(self.now + self.parts[index].ns[node], partial(self.end_node, index, node))
        else:
            self._communicate(index, node)

    def _compute(self, index: int, core: int) -> None:
        if core in self.computing[index] or not self.ready[index][core]:
            return
        node = heapq.heappop(self.ready[index][core])
        self.computing[index].add(core)
        self.starts[index][node] = self.joined[index][node] = self.now
        self.at(self.now + self.parts[index].ns[node], partial(self._end_compute, index, core, node))

    def _end_compute(self, index: int, core: int, node: int) -> None:
        self.computing[index].remove(core)
        self.end_node(index, node)

    def end_node(self, index: int, node: int) -> None:
        self.ends[index][node] = self.now
        left = self.left[index]
        for after in self.parts[index].followers[node]:
            left[after] -= 1
            if not left[after]:
                self._make_ready(index, after)
        self._compute(index, COMPUTE)
        self._compute(index, HOST)

    # Transfers

    def _communicate(self, index: int, node: int) -> None:
        parts = self.parts[index]
        self.starts[index][node] = self.now
        if parts.fixed[node]:
            self.joined[index][node] = self.now
            self.at(self.now + parts.fixed[node], partial(self.end_node, index, node))
            return
        transfer, role = parts.transfers[node], 1 if parts.ops[node] == RECEIVE else 0
        places = self.plan.groups_of[int(self.plan.traffic_of[transfer])][index, role]
        self.join(index, node, transfer, places, is_awaited=role == 0 or not self._is_eager(transfer))

    def _is_eager(self, transfer: int) -> bool:
        """A message that leaves without its receiver."""
        return self.eager and self.plan.graph.transfers[transfer].are_pairs

    def open(self, transfer: int, place: int) -> PhasedInstance:
        traffic, spec = int(self.plan.traffic_of[transfer]), self.plan.graph.transfers[transfer]
        group = self.plan.groups[traffic][place]
        missing = 1 if self._is_eager(transfer) else len(group.members)
        phases = self._phases_of(traffic, spec.num_bytes)[place]
        return PhasedInstance(transfer, place, missing, group=group, priority=spec.priority, phases=phases)

    def _phases_of(self, traffic: int, num_bytes: int) -> list[tuple[Phase, ...]]:
        if (traffic, num_bytes) not in self.phases:
            self.phases[traffic, num_bytes] = list_phases(
                self.plan, traffic, self.machine, self.links, num_bytes / self.machine.chunks
            )
        return self.phases[traffic, num_bytes]

    def begin(self, instance: PhasedInstance) -> None:
        if self.machine.in_flight is None:
            self.send(instance)
            return
        self.queue.append(instance)
        self._serve()

    def _serve(self) -> None:
        """Begin what has a turn at all its members, by the machine's policy."""
        if self.machine.policy == "lifo":
            waiting = self.queue[::-1]
        elif self.machine.policy == "priority":
            waiting = sorted(self.queue, key=lambda instance: -instance.priority)
        else:
            waiting = list(self.queue)
        for instance in waiting:
            members = {index for index, _ in instance.group.members}
            if all(self.in_flight[index] < (self.machine.in_flight or 1) for index in members):
                for index in members:
                    self.in_flight[index] += 1
                self.queue.remove(instance)
                self.send(instance)

    def send(self, instance: PhasedInstance) -> None:
        if not instance.phases:
            self.at(self.now + self.machine.launch_ns, partial(self.end_instance, instance))
            return
        instance.chunks_left, instance.launch_ns = self.machine.chunks, self.machine.launch_ns
        for _ in range(self.machine.chunks):
            self._queue_chunk(instance, 0)

    def _queue_chunk(self, instance: PhasedInstance, place: int) -> None:
        dim = instance.phases[place][0]
        if dim not in instance.waiting:
            instance.waiting[dim], instance.free[dim] = deque(), self.slots
        instance.waiting[dim].append(place)
        self._serve_dim(instance, dim)

    def _serve_dim(self, instance: PhasedInstance, dim: int) -> None:
        waiting, free = instance.waiting[dim], instance.free
        while waiting and free[dim]:
            free[dim] -= 1
            self._enter(instance, waiting.popleft())

    def _enter(self, instance: PhasedInstance, place: int) -> None:
        before = instance.phases[place][1] + instance.launch_ns
        instance.launch_ns = 0.0
        if before:
            self.at(self.now + before, partial(self._flow, instance, place))
        else:
            self._flow(instance, place)

    def _flow(self, instance: PhasedInstance, place: int) -> None:
        _, _, moving, uses = instance.phases[place]
        if moving <= 0:
            self._leave(instance, place)
            return
        for changed in self.shared.start(Flow(partial(self._leave, instance, place), moving, uses), self.now):
            self._schedule(changed)

    def _schedule(self, flow: Flow) -> None:
        flow.version += 1
        self.at(self.now + flow.remaining_ns / flow.rate, partial(self._end_flow, flow, flow.version))

    def _end_flow(self, flow: Flow, version: int) -> None:
        if version != flow.version:
            return
        for changed in self.shared.end(flow, self.now):
            self._schedule(changed)
        flow.ended()

    def _leave(self, instance: PhasedInstance, place: int) -> None:
        left = instance.phases[place][0]
        instance.free[left] += 1
        if place + 1 < len(instance.phases):
            self._queue_chunk(instance, place + 1)
        else:
            instance.chunks_left -= 1
            if not instance.chunks_left:
                self.end_instance(instance)
        self._serve_dim(instance, left)

    def end_instance(self, instance: PhasedInstance) -> None:
        if self.machine.in_flight is not None:
            for index in {index for index, _ in instance.group.members}:
                self.in_flight[index] -= 1
        super().end_instance(instance)
        if self.machine.in_flight is not None:
            self._serve()

    def _check_ended(self) -> None:
        """Raises `GraphError`, which names ranks and nodes, where some never end."""
        waiting: dict[int, int] = {}
        for index, ends in enumerate(self.ends):
            open_nodes = [node for node, end in enumerate(ends) if end < 0]
            if open_nodes:
                begun = [node for node in open_nodes if self.starts[index][node] >= 0]
                waiting[index] = begun[0] if begun else open_nodes[0]
        if waiting:
            of = self.plan.classes.of.tolist()
            stuck = {rank: waiting[index] for rank, index in enumerate(of) if index in waiting}
            ends_of = {id(table): list_ends(table) for table in self.tables}

            def list_absent(rank: int) -> list[int]:
                """The ranks that have not come to the transfer at which one waits."""
                node = stuck[rank]
                if self.starts[of[rank]][node] < 0 or self.parts[of[rank]].transfers[node] < 0:
                    return []
                number, op = self.parts[of[rank]].transfers[node], self.parts[of[rank]].ops[node]
                met = {SEND: RECEIVE, RECEIVE: SEND}.get(op, COLLECTIVE)
                return [
                    other
                    for other in list_partners(self.plan.graph, rank, node)
                    if self.starts[of[other]][ends_of[id(self.tables[of[other]])][number, met]] < 0
                ]

            raise GraphError(describe_deadlock(self.plan.graph, stuck, list_absent))


def list_phases(plan: Plan, traffic: int, machine: Machine, links: Links, num_bytes: float) -> list[tuple[Phase, ...]]:
    """The phases of each group of classes, for so many bytes."""
    times = [[part.times(machine, num_bytes) for part in each.passes] for each in plan.traffics[traffic].footprints]
    rates = links.rates.tolist()
    rows = []
    for group in plan.groups[traffic]:
        phases = []
        footprint = plan.traffics[traffic].footprints[group.footprint]
        for place, part in enumerate(footprint.passes):
            before, moving = (float(column[group.index]) for column in times[group.footprint][place])
            uses = (
                tuple((link, load * num_bytes / rates[link % links.slots] / moving) for link, load in group.uses[place])
                if moving > 0
                else ()
            )
            phases.append((part.dim, before, moving, uses))
        rows.append(tuple(phases))
    return rows


def compute_ns(table: NodeTable, machine: Machine) -> Floats:
    """Of each node the length that its graph gives; on a machine with a peak, of compute whose flops or bytes are known
    the longer of flops at that peak and bytes through the memory (Williams, Waterman, Patterson, "Roofline", 2009)."""
    ns = table.duration_ps / 1000
    if machine.peak_flops_per_ns is None:
        return ns
    calculating = np.nan_to_num(table.flops, nan=0.0) / machine.peak_flops_per_ns
    memory = machine.memory_bytes_per_ns
    moving = np.nan_to_num(table.memory_bytes, nan=0.0) / memory if memory else np.zeros(table.size)
    known = (table.ops == COMPUTE) & ~(np.isnan(table.flops) & np.isnan(table.memory_bytes))
    return np.where(known, np.maximum(calculating, moving), ns)


@dataclass(frozen=True, slots=True, eq=False)
class _TableParts:
    """The columns of a table as lists."""

    ops: list[int]
    ns: list[float]
    fixed: list[float]
    """Of what communicates, a length that the graph gives; 0: the network's."""
    transfers: list[int]
    num_deps: list[int]
    followers: list[list[int]]
    roots: list[int]

    @classmethod
    def of(cls, table: NodeTable, machine: Machine, scale_compute: float) -> "_TableParts":
        num_deps = np.diff(table.dep_starts)
        followers: list[list[int]] = [[] for _ in range(table.size)]
        waiting = np.repeat(np.arange(table.size), num_deps)
        for node, before in zip(waiting.tolist(), table.deps.tolist(), strict=True):
            followers[before].append(node)
        ns = compute_ns(table, machine)
        scaled = np.where(table.ops == COMPUTE, ns / scale_compute, ns)
        return cls(
            table.ops.tolist(),
            scaled.tolist(),
            np.where(table.transfers < 0, 0.0, ns).tolist(),
            table.transfers.tolist(),
            num_deps.tolist(),
            followers,
            np.flatnonzero(num_deps == 0).tolist(),
        )
