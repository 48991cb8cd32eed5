"""A scheduled program as the graph of all its ranks: loops unrolled, one node for what is computed between two points.

The rules are those of docs/network.md, section "Chakra".  Durations are the schedule model's, in whole ns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compare.hlo.collective import Collective
from compare.hlo.devices.groups import Groups
from compare.hlo.text.module import Module
from compare.network.graph.graph import (
    BROADCAST,
    COLLECTIVE,
    COMPUTE,
    PERMUTE,
    PS,
    RECEIVE,
    SEND,
    Graph,
    NodeTable,
    NodeTableBuilder,
    Transfer,
)
from compare.network.machines.kinds import ALL_GATHER
from compare.schedule.device_classes import Classes, number_rows
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import simulate_program
from compare.schedule.step import Compute, Container, Exchange, LocalCopy, Rendezvous, Step, Wait
from compare.schedule.step_simulator import SimulatedStep
from compare.timeline.arrays import Ints, Mask
from compare.timeline.errors import TimingError
from meshes.assignment import assign_chips
from meshes.mesh_argument import Plan

_NO_ROLE, _MEMBER, _SENDER, _RECEIVER = 0, 1, 2, 4
"""What a rank does in a transfer: a sum of these."""


def expand_program(
    module: Module, rows: Sequence[Collective], plan: Plan, *, name: str, hardware: Hardware | None = None
) -> Graph:
    """The graph of one step.  rows: the module's collectives, with the plan's axes.  hardware: as of `model_step`.

    `TimingError` where the program is for one device, or a collective cannot be a transfer.
    """
    return expand_step(simulate_program(module, rows, plan, hardware=hardware), number_ranks(plan), name=name)


def number_ranks(plan: Plan) -> tuple[int, ...]:
    """The rank of each logical device: its place on the machine, x fastest, then y, z, core, slice."""
    x, y, z = plan.topology.sides
    cores = plan.topology.generation.devices
    return tuple(at.x + x * (at.y + y * (at.z + z * (at.core + cores * at.slice_index))) for at in assign_chips(plan))


def expand_step(simulated: SimulatedStep, ranks: Sequence[int], *, name: str) -> Graph:
    """The graph of a step; ranks: of each device.  Waits for local copies are as long as they were simulated."""
    if len(ranks) < 2:
        raise TimingError(f"{name} is a program for one device, which has nobody to talk to")
    classes = simulated.step.classes
    executions = _list_executions(simulated.step, np.array(ranks, np.int64))
    class_of = _split_by_role(classes, executions)
    tables: dict[tuple[object, ...], int] = {}
    distinct: list[NodeTable] = []
    of_class = []
    for device in np.unique(class_of, return_index=True)[1].tolist():
        table = _build_table(simulated, executions, int(classes.of[device]), device)
        key = _content(table)
        if key not in tables:
            tables[key] = len(distinct)
            distinct.append(table)
        of_class.append(tables[key])
    table_of = np.empty(len(ranks), np.int64)
    table_of[list(ranks)] = np.array(of_class, np.int64)[class_of]
    transfers = tuple(each.transfer for each in executions.values() if each.transfer is not None)
    return Graph(name=name, num_ranks=len(ranks), tables=tuple(distinct), table_of=table_of, transfers=transfers)


@dataclass(frozen=True, slots=True)
class _Execution:
    """One execution of a collective."""

    key: int
    transfer: Transfer | None
    """`None` for one that moves nothing: all its groups have one rank, or its payload no byte."""
    index: int
    """Of the transfer."""
    roles: Ints
    """Of each device; executions alike share one array."""
    duration_ns: int
    """Of a broadcast, for which there is no algorithm."""


def _list_executions(step: Step, ranks: Ints) -> dict[int, _Execution]:
    """Every execution by its entry in the step, in order."""
    executions: dict[int, _Execution] = {}
    groups_of: dict[tuple[int, bytes], tuple[Groups, Ints]] = {}
    index = 0
    for number, entry in enumerate(step.entries):
        if not isinstance(entry, Exchange):
            continue
        row = entry.rendezvous.row
        cache = id(row.mesh_groups), entry.active.tobytes()
        if cache not in groups_of:
            groups_of[cache] = _find_roles(row, entry.active[step.classes.of], ranks)
        groups, roles = groups_of[cache]
        key = len(executions)
        transfer = None
        if groups and row.payload_bytes:
            transfer = Transfer(
                key=key, kind=row.kind, num_bytes=_input_bytes(row, groups), groups=groups, collective=row.name
            )
        executions[number] = _Execution(
            key, transfer, index, roles if transfer else np.zeros_like(roles), _broadcast_ns(entry.rendezvous)
        )
        index += transfer is not None
    return executions


def _find_roles(row: Collective, active: Mask, ranks: Ints) -> tuple[Groups, Ints]:
    """The groups that move something, as ranks, and what each device does in them."""
    roles = np.zeros(ranks.size, np.int64)
    groups = []
    for group in row.mesh_groups:
        if row.kind == PERMUTE:
            source, target = group
            if source == target or not active[[source, target]].any():
                continue
            roles[source] |= _SENDER
            roles[target] |= _RECEIVER
        else:
            if len(group) < 2 or not active[list(group)].any():
                continue
            roles[list(group)] |= _MEMBER
        groups.append(tuple(ranks[list(group)].tolist()))
    return tuple(groups), np.where(active, roles, _NO_ROLE)


def _input_bytes(row: Collective, groups: Groups) -> int:
    """A rank's input: of an all-gather its shard of the result."""
    if row.kind != ALL_GATHER:
        return row.payload_bytes
    sizes = {len(group) for group in groups}
    if len(sizes) > 1 or row.payload_bytes % max(sizes):
        raise TimingError(
            f"{row.name} gathers {row.payload_bytes:,} bytes over groups of {' and '.join(map(str, sorted(sizes)))} "
            "ranks: its shards are no whole number of bytes"
        )
    return row.payload_bytes // max(sizes)


def _broadcast_ns(rendezvous: Rendezvous) -> int:
    if rendezvous.row.kind != BROADCAST or not rendezvous.cost.moving_ns.size:
        return 0
    return round(float((rendezvous.cost.before_ns + rendezvous.cost.moving_ns).max()))


def _split_by_role(classes: Classes, executions: Mapping[int, _Execution]) -> Ints:
    """A number for each device; those with the same one do the same in the same class."""
    distinct = {id(each.roles): each.roles for each in executions.values()}
    return number_rows(np.stack([classes.of, *distinct.values()], axis=1))


def _build_table(
    simulated: SimulatedStep, executions: Mapping[int, _Execution], class_index: int, device: int
) -> NodeTable:
    """The nodes of one device, and of all that do the same."""
    nodes = NodeTableBuilder()
    chain: list[int] = []
    computed, rounded = 0.0, 0
    work, computes = np.zeros(3), list[int]()
    in_flight: dict[int, list[int]] = {}
    entries = simulated.step.entries
    for number, (entry, times) in enumerate(zip(entries, simulated.times, strict=True)):
        if not entry.active[class_index] or isinstance(entry, Container | LocalCopy):
            continue
        if isinstance(entry, Compute):
            computed += entry.run.total_ns
            work = work + entry.run.work.sum(axis=0)
            continue
        if isinstance(entry, Wait) and isinstance(copy := entries[entry.begun], LocalCopy):
            computed += float(times.end[class_index] - times.begun[class_index])
            work = work + np.array([0.0, 0.0, copy.num_bytes])
            continue
        if ns := round(computed) - rounded:
            chain = [_add_compute(nodes, ns, chain)]
            computes.append(chain[0])
            nodes.add_work(chain[0], work)
            rounded, work = rounded + ns, np.zeros(3)
        if isinstance(entry, Wait):
            chain = sorted({*chain, *in_flight.pop(entry.begun, ())})
            continue
        started = _communicate(nodes, executions[number], device, chain)
        if entry.is_start:
            in_flight[number] = started
        elif started:
            chain = started
    if ns := round(computed) - rounded:
        computes.append(_add_compute(nodes, ns, chain))
    if not nodes.size:
        computes.append(_add_compute(nodes, 1, ()))
    if computes:  # what takes less than half a ns has no node of its own
        nodes.add_work(computes[-1], work)
    return nodes.build()


def _add_compute(nodes: NodeTableBuilder, ns: int, chain: Sequence[int]) -> int:
    return nodes.add(COMPUTE, f"compute.{nodes.size + 1}", chain, duration_ps=ns * PS)


def _communicate(nodes: NodeTableBuilder, execution: _Execution, device: int, chain: Sequence[int]) -> list[int]:
    """Adds the nodes of one execution on one device: one, a send and a receive, or none."""
    transfer, role = execution.transfer, int(execution.roles[device])
    if transfer is None:
        return []
    ops = [op for bit, op in ((_MEMBER, COLLECTIVE), (_SENDER, SEND), (_RECEIVER, RECEIVE)) if role & bit]
    name = f"{transfer.collective}.{execution.key}"
    duration_ps, num_bytes = execution.duration_ns * PS, transfer.num_bytes
    return [
        nodes.add(op, name, chain, transfer=execution.index, num_bytes=num_bytes, duration_ps=duration_ps) for op in ops
    ]


def _content(table: NodeTable) -> tuple[object, ...]:
    columns = (table.ids, table.ops, table.duration_ps, table.transfers, table.dep_starts, table.deps, table.work)
    return (*(column.tobytes() for column in columns), table.names)
