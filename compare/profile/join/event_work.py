"""The work of the events of a measured timeline, counted from the program that ran."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.hlo.collectives.event_names import original_of
from compare.hlo.counts.partition_index import first_call_context
from compare.hlo.provenance.provenance import Provenance
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.module import Module
from compare.profile.platforms.cpu import END
from compare.schedule.exchange import CollectiveCosts, NetworkWork
from compare.schedule.hardware import Hardware
from compare.schedule.links import Torus
from compare.schedule.schedule_program import CollectiveOp, Notes
from compare.schedule.work.arithmetic import ArithmeticCounts
from compare.schedule.work.memory import MemoryTraffic, copied_bytes, is_free
from compare.timeline.arrays import Floats
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import COMMUNICATION, OCCUPIED, Timeline, has_role
from meshes.mesh_argument import Plan

_COPIES = ("copy-start", "slice-start")


def add_work(timeline: Timeline, module: Module, rows: Sequence[Collective], plan: Plan | None) -> Timeline:
    """The timeline with WORK_COLUMNS, and a scope on each compute event whose instruction has one.

    module: the program that ran; rows: its collectives.  plan: where it ran; `None` unless on TPUs, and the work on
    networks is then unknown.
    """
    events = timeline.events
    is_compute = has_role(events, OCCUPIED)
    is_first = ~events["name"].astype(str).str.startswith(END).to_numpy()  # of an operation in two parts
    names = events["hlo_op"].astype("category")
    codes = names.cat.codes.to_numpy()
    used = sorted(set(codes[is_compute].tolist()) - {-1})
    instructions = _find(module, {code: str(names.cat.categories[code]) for code in used})
    table, scopes = np.full((len(names.cat.categories) + 1, 3), np.nan), [""] * (len(names.cat.categories) + 1)
    counts = _Counts(module)
    for code, item in instructions.items():
        table[code], scopes[code] = counts.work(item), counts.scope(item)
    columns = {name: np.zeros(len(events)) for name in WORK_COLUMNS}
    for at, name in enumerate(list(WORK_COLUMNS)[:3]):
        columns[name][is_compute & is_first] = table[codes[is_compute & is_first], at]
    columns |= _work_on_networks(timeline, rows, plan)
    words = np.array(scopes, dtype=object)[codes]
    scope = np.where(is_compute, words, events["scope"].astype(str).to_numpy())
    lost = int(np.isnan(columns["matrix_flops"]).sum())
    note = f"the work of {lost} of {int(is_compute.sum())} operations that compute is not known from the program"
    return replace(
        timeline,
        events=events.assign(scope=pd.Categorical(scope), **columns),
        notes=(*timeline.notes, *[note][: min(lost, 1)]),
    )


def add_network_work(timeline: Timeline, rows: Sequence[Collective], plan: Plan) -> Timeline:
    """The same with what its collectives send over the networks of the plan's slice; it has WORK_COLUMNS already."""
    return replace(timeline, events=timeline.events.assign(**_work_on_networks(timeline, rows, plan)))


def _work_on_networks(timeline: Timeline, rows: Sequence[Collective], plan: Plan | None) -> dict[str, Floats]:
    events = timeline.events
    columns = {name: np.zeros(len(events)) for name in ("ici_byte_hops", "dcn_bytes")}
    pairs = list(zip(events["collective"].astype(str).tolist(), events["device"].tolist(), strict=True))
    networks = _networks(rows, plan)
    of_pair = {pair: _of_network(networks.get(pair[0]), _members(timeline, pair[1])) for pair in set(pairs)}
    for row in np.flatnonzero(has_role(events, (COMMUNICATION,))).tolist():
        columns["ici_byte_hops"][row], columns["dcn_bytes"][row] = of_pair[pairs[row]]
    return columns


def _find(module: Module, names: Mapping[int, str]) -> dict[int, Instruction]:
    """The instruction of each name, or the one that it was cloned from."""
    known = {item.name: item for part in module.computations.values() for item in part}
    return {code: known[original] for code, name in names.items() if (original := original_of(name, known))}


class _Counts:
    """The work and scope of single instructions of a module."""

    def __init__(self, module: Module) -> None:
        self._arithmetic, self._memory = ArithmeticCounts(), MemoryTraffic()
        self._flow = Provenance(module, parts={}, caches=frozenset())

    def work(self, item: Instruction) -> Floats:
        """matrix_flops, vector_ops, memory_bytes; of a started copy all its bytes; NaN where unreadable."""
        try:
            arithmetic = self._arithmetic.of(item)
            return np.array([arithmetic.matrix_flops, arithmetic.vector_ops, self._bytes(item)], np.float64)
        except HloError:
            return np.full(3, np.nan)

    def _bytes(self, item: Instruction) -> int:
        if item.opcode in _COPIES:
            return copied_bytes(item)
        if is_free(item) or item.opcode.endswith(("-start", "-done", "-update")):
            return 0
        return self._memory.of(item)

    def scope(self, item: Instruction) -> str:
        return self._flow.scope_of_compute(first_call_context(item.computation), item)


def _networks(rows: Sequence[Collective], plan: Plan | None) -> dict[str, NetworkWork]:
    if plan is None:
        return {}
    costs = CollectiveCosts(Torus.of(plan, on_chip_weight=1.0), Hardware.of(plan.topology.generation), Notes())
    return {row.name: costs.work_of(CollectiveOp(row.name, row, "whole", row.text)) for row in rows}


def _members(timeline: Timeline, device: int) -> Sequence[int]:
    return timeline.stands_for.get(device, (device,))


def _of_network(network: NetworkWork | None, members: Sequence[int]) -> tuple[float, float]:
    """Means over the devices that one stands for; over all where it is not known which it is."""
    if network is None:
        return float("nan"), float("nan")
    amounts = np.stack([network.ici_byte_hops, network.dcn_bytes])
    known = [device for device in members if 0 <= device < amounts.shape[1]]
    hops, dcn = (amounts[:, known] if known else amounts).mean(axis=1).tolist()
    return hops, dcn
