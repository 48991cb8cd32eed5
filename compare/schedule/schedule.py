"""Model one step of a scheduled TPU program: every class of devices runs the schedule on its own clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.hlo.collectives.event_names import map_event_names
from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.devices.numbering import DeviceNumbering
from compare.hlo.text.module import Module
from compare.schedule.class_collectives import ClassCollective, CollectiveCost, relate_chips, relate_devices
from compare.schedule.costs import InstructionCosts
from compare.schedule.device_classes import Classes, group_devices
from compare.schedule.exchange import CollectiveCosts, NetworkWork
from compare.schedule.hardware import Hardware
from compare.schedule.links import Torus
from compare.schedule.schedule_program import (
    Block,
    CollectiveOp,
    Conditional,
    Copy,
    Loop,
    Node,
    Notes,
    Run,
    Schedule,
    walk,
)
from compare.schedule.simulator_state import SimulatorState
from compare.schedule.step_log import StepLog
from compare.schedule.trace_writer import BESIDE_LINE, Label, Record, list_events, merge_alike
from compare.timeline.arrays import Floats, Ints, Mask
from compare.timeline.errors import TimingError
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, PART, STEP_COLUMNS, Timeline, add_overlap
from meshes.devices.topology import Topology
from meshes.mesh_argument import Plan

MOST_POINTS = 400_000
"""Most points of a step where something waits or starts; the model refuses longer steps."""
MOST_EVENTS = 2_000_000
"""Beyond this, all compute between two such points becomes one event."""


def model_step(module: Module, rows: Sequence[Collective], plan: Plan, *, hardware: Hardware | None = None) -> Timeline:
    """One step on every device of a plan, from 0 to the end of the last.

    rows: the module's collectives, with the plan's axes.  hardware: other rates than the generation's.
    `TimingError` where the module does not fit the plan's devices, or the step is too long.
    """
    rates = hardware or Hardware.of(plan.topology.generation)
    slices = _slices(module, plan)
    return simulate(module, rows, _torus(plan, rates), hardware=rates, slices=slices, name=plan.topology.name)


def model_in_order(module: Module, rows: Sequence[Collective], topology: Topology) -> Timeline:
    """`model_step` of a program whose logical device i is the i-th of a slice, row by row, whatever its axes are."""
    rates = Hardware.of(topology.generation)
    x, y, z = (*topology.wraps, False)[:3]
    torus = Torus(topology.places(), topology.sides, (x, y, z), _weigh_chip(rates))
    in_module = module.num_devices or topology.num_devices
    if in_module * topology.slices != topology.num_devices and in_module != topology.num_devices:
        raise TimingError(
            f"the program is for {in_module} devices, and {topology.name} has {topology.num_devices}; name the slice "
            f"that it was compiled for"
        )
    slices = topology.num_devices // in_module
    return simulate(module, rows, torus, hardware=rates, slices=slices, name=topology.name)


def log_step(module: Module, rows: Sequence[Collective], plan: Plan, *, hardware: Hardware | None = None) -> StepLog:
    """The same step as what each device does in the order of the text.  The same errors."""
    rates = hardware or Hardware.of(plan.topology.generation)
    return log_schedule(module, rows, _torus(plan, rates), hardware=rates, slices=_slices(module, plan))


def simulate(
    module: Module, rows: Sequence[Collective], torus: Torus, *, hardware: Hardware, slices: int, name: str
) -> Timeline:
    """`model_step` for any devices on a torus.  slices: how often the module's devices are repeated."""
    return _timeline(_play(module, rows, torus, hardware=hardware, slices=slices), name)


def log_schedule(
    module: Module, rows: Sequence[Collective], torus: Torus, *, hardware: Hardware, slices: int
) -> StepLog:
    """`log_step` for any devices on a torus."""
    step = _play(module, rows, torus, hardware=hardware, slices=slices)
    return replace(step.log, notes=step.notes.lines)


def _torus(plan: Plan, rates: Hardware) -> Torus:
    return Torus.of(plan, on_chip_weight=_weigh_chip(rates))


def _weigh_chip(rates: Hardware) -> float:
    """Time of a byte between two devices of a chip ÷ time on a link."""
    return rates.link_bytes_per_ns / rates.chip_bytes_per_ns


def _play(module: Module, rows: Sequence[Collective], torus: Torus, *, hardware: Hardware, slices: int) -> "_Step":
    # A text without a number of devices is for all devices.
    partitions = module.num_partitions if module.num_devices else len(torus.places) // slices
    values = Evaluator(DeviceNumbering(module.replica_count, partitions, slices, torus.ids if slices > 1 else ()))
    schedule = Schedule(module, carriers=map_event_names(module, rows), values=values, costs=InstructionCosts(hardware))
    nodes = schedule.nodes()
    collective_costs = CollectiveCosts(torus, hardware, schedule.notes)
    comms, choices = _list_collectives(nodes)
    costs = {id(comm): collective_costs.of(comm) for comm in comms}
    networks = {id(comm): collective_costs.work_of(comm) for comm in comms}
    alike = {id(cost): cost for cost in costs.values()}
    relations = {key: relate_devices(cost, torus) for key, cost in alike.items()}
    classes = group_devices(_list_branches(choices, torus), [relate_chips(torus), *relations.values()])
    rendezvous = {key: ClassCollective.of(cost, relations[key], classes, torus) for key, cost in alike.items()}
    step = _Step(
        classes, {key: rendezvous[id(cost)] for key, cost in costs.items()}, costs, networks, schedule.scopes,
        schedule.notes, StepLog(classes),
    )  # fmt: skip
    step.play(nodes)
    step.finish()
    return step


def _slices(module: Module, plan: Plan) -> int:
    num_devices, in_module = plan.mesh.num_devices, module.num_devices or plan.mesh.num_devices
    if num_devices % in_module or num_devices // in_module not in (1, plan.topology.slices):
        raise TimingError(
            f"the program is for {in_module} devices, and mesh {plan.mesh.name} on {plan.topology.name} has "
            f"{num_devices}; give the mesh that it was compiled for"
        )
    return num_devices // in_module


def _list_collectives(nodes: Sequence[Node]) -> tuple[list[CollectiveOp], list[Conditional]]:
    """The collectives, without their dones, and the conditionals."""
    comms: list[CollectiveOp] = []
    choices: list[Conditional] = []

    def see(node: Node) -> None:
        if isinstance(node, CollectiveOp) and node.part != "done":
            comms.append(node)
        elif isinstance(node, Conditional):
            choices.append(node)

    walk(nodes, see)
    return comms, choices


def _list_branches(choices: Sequence[Conditional], torus: Torus) -> Ints:
    """(devices, columns): the branch that each device takes, where not all take the same."""
    size = len(torus.places)
    taken = [choice.taken.reshape(size, -1) for choice in choices if choice.taken.shape[0] == size]
    return np.concatenate([np.zeros((size, 1), np.int64), *taken], axis=1)


@dataclass(frozen=True, slots=True)
class _Flight:
    """An asynchronous collective in flight."""

    order: int
    """Order of start."""
    start: int
    """The identity of its start."""
    name: str
    row: Collective
    begun: Floats
    ready: Floats
    end: Floats
    active: Mask


@dataclass
class _Step:
    """The simulation of one step."""

    classes: Classes
    rendezvous: Mapping[int, ClassCollective]
    costs: Mapping[int, CollectiveCost]
    networks: Mapping[int, NetworkWork]
    scopes: Mapping[str, str]
    """Of instructions that compute."""
    notes: Notes
    log: StepLog
    record: Record = field(default_factory=Record)
    iterations: list[int] = field(default_factory=list)
    flights: dict[str, list[_Flight]] = field(default_factory=dict)
    copies: dict[str, list[tuple[Floats, int]]] = field(default_factory=dict)
    points: int = 0

    def __post_init__(self) -> None:
        self.clocks = SimulatorState.of(self.classes.count)
        self.active: Mask = np.ones(self.classes.count, np.bool_)

    def play(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Run):
                self.record.run(node, self.clocks.now, self.active)
                self.log.compute(np.where(self.active, node.total_ns, 0.0), node.work.sum(axis=0), self.active)
                self.clocks.compute(node.total_ns, node.memory_ns, self.active)
            else:
                self._point(node)

    def _point(self, node: Node) -> None:
        self.points += 1
        if self.points > MOST_POINTS:
            raise TimingError(f"a step waits or starts something more than {MOST_POINTS} times; that many are modelled")
        if isinstance(node, CollectiveOp):
            {"whole": self._whole, "start": self._start, "done": self._done}[node.part](node)
        elif isinstance(node, Copy):
            self._copy(node)
        elif isinstance(node, Loop):
            self._loop(node)
        elif isinstance(node, Conditional):
            self._choice(node)
        elif isinstance(node, Block):
            self._covered(node.name, node.body)

    def _whole(self, comm: CollectiveOp) -> None:
        begun = self.clocks.now
        times = self.clocks.start_collective(self.rendezvous[id(comm)], self.active)
        self.clocks.wait(times.end, self.active)
        self.log.exchange("whole", self.points, comm.row, self.costs[id(comm)], self.active)
        label = Label(comm.name, COMMUNICATION, row=comm.row, network=self.networks[id(comm)])
        self.record.mark(label, begun, times.end, times.ready - begun, self.active)

    def _start(self, comm: CollectiveOp) -> None:
        now = self.clocks.now
        times = self.clocks.start_collective(self.rendezvous[id(comm)], self.active)
        self.log.exchange("start", self.points, comm.row, self.costs[id(comm)], self.active)
        self.record.mark(Label(comm.name, PART, row=comm.row), now, now, None, self.active)
        flight = _Flight(self.points, id(comm), comm.name, comm.row, now, times.ready, times.end, self.active)
        self.flights.setdefault(comm.row.name, []).append(flight)

    def _done(self, comm: CollectiveOp) -> None:
        now = self.clocks.now
        waiting = [flights for flights in map(self.flights.get, comm.ends) if flights]
        if not waiting:
            self.notes.add(f"{comm.name} ends what was started before this step: it does not wait")
            return
        flight = min(waiting, key=lambda flights: flights[0].order).pop(0)
        self.clocks.wait(flight.end, self.active)
        self.log.exchange("done", flight.order, flight.row, self.costs[flight.start], self.active)
        self.record.mark(Label(comm.name, PART, row=flight.row), now, self.clocks.now, None, self.active)
        self._land(flight, self.clocks.now)

    def _land(self, flight: _Flight, end: Floats) -> None:
        """Record it as a profile shows it: from start to done, even if all data arrived earlier."""
        label = Label(flight.name, COMMUNICATION, BESIDE_LINE, flight.row, self.networks[flight.start])
        self.record.mark(label, flight.begun, end, flight.ready - flight.begun, flight.active)

    def _copy(self, copy: Copy) -> None:
        now = self.clocks.now
        if not copy.is_end:
            self.clocks.start_copy(copy.name, copy.ns, self.active)
            self.copies.setdefault(copy.name, []).append((now, copy.num_bytes))
            return
        if not self.clocks.end_copy(copy.start, self.active):
            return
        after = self.clocks.now
        waited = self.active & (after > now)
        if waited.any():
            self.record.mark(Label(copy.name, COMPUTE), now, after, None, waited)
        begun, num_bytes = self.copies[copy.start].pop(0)
        self.log.compute(np.where(waited, after - now, 0.0), np.array([0.0, 0.0, num_bytes]), self.active)
        label = Label(copy.start, PART, BESIDE_LINE, memory_bytes=num_bytes)
        self.record.mark(label, begun, after, None, self.active)

    def _loop(self, loop: Loop) -> None:
        begun = self.clocks.now
        self.iterations.append(0)
        for trip in range(loop.trips):
            self.iterations[-1] = trip
            self.play(loop.test)
            self.play(loop.body)
        self.play(loop.test)
        self.iterations.pop()
        self.record.mark(Label(loop.name, CONTAINER), begun, self.clocks.now, None, self.active)

    def _choice(self, choice: Conditional) -> None:
        begun, outer = self.clocks.now, self.active
        taken = self._taken(choice.taken)
        for index, branch in enumerate(choice.branches):
            self.active = outer & (taken == index)
            if branch and self.active.any():
                self.play(branch)
        self.active = outer
        self.record.mark(Label(choice.name, CONTAINER), begun, self.clocks.now, None, outer)

    def _taken(self, taken: Ints) -> Ints:
        """The branch of each class in this iteration."""
        iteration = tuple(min(trip, size - 1) for trip, size in zip(self.iterations, taken.shape[1:], strict=False))
        now = taken[(slice(None), *iteration)].reshape(taken.shape[0])
        return now[self.classes.first] if now.size > 1 else np.broadcast_to(now, self.classes.count)

    def _covered(self, name: str, nodes: Sequence[Node]) -> None:
        begun = self.clocks.now
        self.play(nodes)
        self.record.mark(Label(name, CONTAINER), begun, self.clocks.now, None, self.active)

    def finish(self) -> None:
        """Collectives that nothing waits for run to their end."""
        for flight in (flight for flights in self.flights.values() for flight in flights):
            self.notes.add(f"nothing waits for {flight.name}: it ends when all has arrived")
            self._land(flight, flight.end)

    @property
    def end_ns(self) -> float:
        ends = [float(np.nanmax(end)) for _, end, _ in self.record.times]
        return max([float(self.clocks.now.max()), *ends])


def _timeline(step: _Step, name: str) -> Timeline:
    shown = merge_alike(step.record, step.classes)
    whole_runs = step.record.num_events * shown.count > MOST_EVENTS
    if whole_runs:
        step.notes.add("what is computed between two communications is shown as one event, by its longest operation")
    given = list_events(step.record, step.classes, shown, scopes=step.scopes, whole_runs=whole_runs)
    devices = shown.first.astype(np.int32)
    zero = np.zeros(devices.size)
    steps = pd.DataFrame({"device": devices, "step": 0, "start_ns": zero, "duration_ns": zero + step.end_ns})
    steps = steps.astype(STEP_COLUMNS)
    return Timeline(
        source="modelled",
        label=f"modelled for {name}",
        events=add_overlap(given, steps),
        steps=steps,
        stands_for={int(first): shown.members(index) for index, first in enumerate(shown.first.tolist())},
        notes=step.notes.lines,
    )
