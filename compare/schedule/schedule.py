"""Model one step of a scheduled TPU program: every class of devices runs the schedule on its own clock."""

from collections.abc import Sequence

import numpy as np

from compare.hlo.collective import Collective
from compare.hlo.collectives.event_names import map_event_names
from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.devices.groups import DeviceNumbering
from compare.hlo.text.module import Module
from compare.schedule.class_collectives import ClassCollective, relate_chips, relate_devices
from compare.schedule.costs import InstructionCosts
from compare.schedule.device_classes import group_devices
from compare.schedule.exchange import CollectiveCosts
from compare.schedule.hardware import Hardware
from compare.schedule.links import Torus
from compare.schedule.schedule_program import CollectiveOp, Conditional, Node, Schedule, walk
from compare.schedule.step import Rendezvous, Unroller
from compare.schedule.step_simulator import SimulatedStep, simulate_step
from compare.schedule.trace_writer import write_timeline
from compare.timeline.arrays import Ints
from compare.timeline.errors import TimingError
from compare.timeline.timeline import Timeline
from meshes.devices.topology import Topology
from meshes.mesh_argument import Plan


def model_step(module: Module, rows: Sequence[Collective], plan: Plan, *, hardware: Hardware | None = None) -> Timeline:
    """One step on every device of a plan, from 0 to the end of the last.

    rows: the module's collectives, with the plan's axes.  hardware: other rates than the generation's.
    `TimingError` where the module does not fit the plan's devices, or the step is too long.
    """
    return write_timeline(simulate_program(module, rows, plan, hardware=hardware), plan.topology.name)


def model_in_order(module: Module, rows: Sequence[Collective], topology: Topology) -> Timeline:
    """`model_step` of a program whose logical device i is the i-th of a slice, row by row, whatever its axes are."""
    rates = Hardware.of(topology.generation)
    torus = Torus(topology.places(), topology.sides, topology.wraps, rates.on_chip_weight)
    in_module = module.num_devices or topology.num_devices
    if in_module * topology.slices != topology.num_devices and in_module != topology.num_devices:
        raise TimingError(
            f"the program is for {in_module} devices, and {topology.name} has {topology.num_devices}; name the slice "
            f"that it was compiled for"
        )
    slices = topology.num_devices // in_module
    return model_module(module, rows, torus, hardware=rates, slices=slices, name=topology.name)


def simulate_program(
    module: Module, rows: Sequence[Collective], plan: Plan, *, hardware: Hardware | None = None
) -> SimulatedStep:
    """The same step as what each class of devices does in the order of the text.  The same errors."""
    rates = hardware or Hardware.of(plan.topology.generation)
    torus = Torus.of(plan, on_chip_weight=rates.on_chip_weight)
    return simulate_module(module, rows, torus, hardware=rates, slices=_slices(module, plan))


def model_module(
    module: Module, rows: Sequence[Collective], torus: Torus, *, hardware: Hardware, slices: int, name: str
) -> Timeline:
    """`model_step` for any devices on a torus.  slices: how often the module's devices are repeated."""
    return write_timeline(simulate_module(module, rows, torus, hardware=hardware, slices=slices), name)


def simulate_module(
    module: Module, rows: Sequence[Collective], torus: Torus, *, hardware: Hardware, slices: int
) -> SimulatedStep:
    """`simulate_program` for any devices on a torus."""
    # A text without a number of devices is for all devices.
    partitions = module.num_partitions if module.num_devices else len(torus.places) // slices
    values = Evaluator(DeviceNumbering(module.replica_count, partitions, slices, torus.ids if slices > 1 else ()))
    schedule = Schedule(module, carriers=map_event_names(module, rows), values=values, costs=InstructionCosts(hardware))
    nodes = schedule.nodes()
    collective_costs = CollectiveCosts(torus, hardware, schedule.notes)
    comms, choices = _list_collectives(nodes)
    costs = {id(comm): collective_costs.of(comm) for comm in comms}
    alike = {id(cost): cost for cost in costs.values()}
    relations = {key: relate_devices(cost, torus) for key, cost in alike.items()}
    classes = group_devices(_list_branches(choices, torus), [relate_chips(torus), *relations.values()])
    among = {key: ClassCollective.of(cost, relations[key], classes, torus) for key, cost in alike.items()}
    rendezvous = {
        id(comm): Rendezvous(comm.row, costs[id(comm)], among[id(costs[id(comm)])], collective_costs.work_of(comm))
        for comm in comms
    }
    return simulate_step(Unroller(classes, rendezvous, schedule.notes).unroll(nodes, schedule.scopes))


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
