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
    COLLECTIVE,
    PERMUTE,
    PS,
    RECEIVE,
    SEND,
    Graph,
    NodeTable,
    NodeTableBuilder,
    Transfer,
)
from compare.network.machines.machine import ALL_GATHER
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import log_step
from compare.schedule.step_log import Compute, Exchange, StepLog
from compare.timeline.arrays import Ints, Mask
from compare.timeline.errors import TimingError
from meshes.assignment import assign_chips
from meshes.mesh_argument import Plan

BROADCAST = "collective-broadcast"
_NO_ROLE, _MEMBER, _SENDER, _RECEIVER = 0, 1, 2, 4
"""What a rank does in a transfer: a sum of these."""


def expand_program(
    module: Module, rows: Sequence[Collective], plan: Plan, *, name: str, hardware: Hardware | None = None
) -> Graph:
    """The graph of one step.  rows: the module's collectives, with the plan's axes.  hardware: as of `model_step`.

    `TimingError` where the program is for one device, or a collective cannot be a transfer.
    """
    return expand_log(log_step(module, rows, plan, hardware=hardware), number_ranks(plan), name=name)


def number_ranks(plan: Plan) -> tuple[int, ...]:
    """The rank of each logical device: its place on the machine, x fastest, then y, z, core, slice."""
    x, y, z = plan.topology.sides
    cores = plan.topology.generation.devices
    return tuple(
        at.x + x * (at.y + y * (at.z + z * (at.core + cores * at.slice_index))) for at in assign_chips(plan)
    )  # fmt: skip


def expand_log(log: StepLog, ranks: Sequence[int], *, name: str) -> Graph:
    """The graph of a logged step; ranks: of each device."""
    if len(ranks) < 2:
        raise TimingError(f"{name} is a program for one device, which has nobody to talk to")
    executions = _list_executions(log, np.array(ranks, np.int64))
    class_of = _split_by_role(log, executions)
    tables: dict[tuple[object, ...], int] = {}
    distinct: list[NodeTable] = []
    of_class = []
    for device in np.unique(class_of, return_index=True)[1].tolist():
        table = _build_table(log, executions, int(log.classes.of[device]), device)
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
    """Of a broadcast, which no algorithm plays."""


def _list_executions(log: StepLog, ranks: Ints) -> dict[int, _Execution]:
    """Every execution by its number in the log, in order."""
    executions: dict[int, _Execution] = {}
    groups_of: dict[tuple[int, bytes], tuple[Groups, Ints]] = {}
    index = 0
    for entry in log.entries:
        if not isinstance(entry, Exchange) or entry.part == "done":
            continue
        row = entry.row
        cache = id(row.mesh_groups), entry.active.tobytes()
        if cache not in groups_of:
            groups_of[cache] = _find_roles(row, entry.active[log.classes.of], ranks)
        groups, roles = groups_of[cache]
        key = len(executions)
        transfer = None
        if groups and row.payload_bytes:
            transfer = Transfer(
                key=key, kind=row.kind, num_bytes=_input_bytes(row, groups), groups=groups, collective=row.name
            )  # fmt: skip
        executions[entry.number] = _Execution(
            key, transfer, index, roles if transfer else np.zeros_like(roles), _broadcast_ns(entry)
        )  # fmt: skip
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


def _broadcast_ns(entry: Exchange) -> int:
    if entry.row.kind != BROADCAST or not entry.cost.moving_ns.size:
        return 0
    return round(float((entry.cost.before_ns + entry.cost.moving_ns).max()))


def _split_by_role(log: StepLog, executions: Mapping[int, _Execution]) -> Ints:
    """A number for each device; those with the same one do the same in the same class."""
    distinct = {id(each.roles): each.roles for each in executions.values()}
    columns = np.stack([log.classes.of, *distinct.values()], axis=1)
    return np.asarray(np.unique(columns, axis=0, return_inverse=True)[1], np.int64).reshape(-1)


def _build_table(log: StepLog, executions: Mapping[int, _Execution], class_index: int, device: int) -> NodeTable:
    """The nodes of one device, and of all that do the same."""
    nodes = NodeTableBuilder()
    chain: list[int] = []
    computed, rounded = 0.0, 0
    work, computes = np.zeros(3), list[int]()
    in_flight: dict[int, list[int]] = {}
    for entry in log.entries:
        if isinstance(entry, Compute):
            computed += float(entry.ns[class_index])
            work = work + entry.work[class_index]
            continue
        if not entry.active[class_index]:
            continue
        if ns := round(computed) - rounded:
            chain = [nodes.compute(f"compute.{nodes.size + 1}", ns * PS, chain)]
            computes.append(chain[0])
            nodes.add_work(chain[0], work)
            rounded, work = rounded + ns, np.zeros(3)
        if entry.part == "done":
            chain = sorted({*chain, *in_flight.pop(entry.number, ())})
            continue
        started = _communicate(nodes, executions[entry.number], device, chain)
        if entry.part == "start":
            in_flight[entry.number] = started
        elif started:
            chain = started
    if ns := round(computed) - rounded:
        computes.append(nodes.compute(f"compute.{nodes.size + 1}", ns * PS, chain))
    if not nodes.size:
        computes.append(nodes.compute("compute.1", PS, ()))
    if computes:  # what takes less than half a ns has no node of its own
        nodes.add_work(computes[-1], work)
    return nodes.build()


def _communicate(nodes: NodeTableBuilder, execution: _Execution, device: int, chain: Sequence[int]) -> list[int]:
    """Adds the nodes of one execution on one device: one, a send and a receive, or none."""
    transfer, role = execution.transfer, int(execution.roles[device])
    if transfer is None:
        return []
    ops = [op for bit, op in ((_MEMBER, COLLECTIVE), (_SENDER, SEND), (_RECEIVER, RECEIVE)) if role & bit]
    name = f"{transfer.collective}.{execution.key}"
    return [
        nodes.communicate(
            op, name, execution.index, transfer.num_bytes, chain, duration_ps=execution.duration_ns * PS
        )
        for op in ops
    ]  # fmt: skip


def _content(table: NodeTable) -> tuple[object, ...]:
    columns = (table.ids, table.ops, table.duration_ps, table.transfers, table.dep_starts, table.deps, table.work)
    return (*(column.tobytes() for column in columns), table.names)
