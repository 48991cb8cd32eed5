"""What a transfer puts on the links of a machine, whatever their rates: hops, bytes on the busiest link, links used.

All groups of a transfer run at once; the bytes that they put on a link add up.  Rates come in only at the end
(`PassFootprint.times`), so that many machines of one shape share one footprint.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.network.algorithms import Phase, lay_out, lay_out_pairs
from compare.network.engine.links import Links, Routes
from compare.network.machines.machine import Machine
from compare.timeline.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class StepFootprint:
    """A run of identical steps, normalised per input byte."""

    hops: Floats
    """(groups, dims): links of the longest way."""
    load: Floats
    """(groups, dims): bytes on the busiest link."""
    count: int
    reduced: float


@dataclass(frozen=True, slots=True, eq=False)
class Uses:
    """Own bytes of each group on each link, over all steps of a pass, per byte of a rank's input."""

    group: Ints
    link: Ints
    load: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PassFootprint:
    """One phase of a transfer."""

    dim: int
    """-1 where it goes over several."""
    steps: tuple[StepFootprint, ...]
    uses: Uses

    def times(self, machine: Machine, num_bytes: float) -> tuple[Floats, Floats]:
        """(latency and reductions, time on the busiest link) of each group, in ns."""
        latency_ns = np.array([dim.latency_ns for dim in machine.dims])
        rates = np.array([dim.bytes_per_ns for dim in machine.dims])
        memory = machine.memory_bytes_per_ns
        before, moving = np.zeros(0), np.zeros(0)
        for index, step in enumerate(self.steps):
            waiting = step.hops @ latency_ns + (machine.endpoint_ns or 0)
            if memory:
                waiting = waiting + 3 * step.reduced * num_bytes / memory
            carrying = (step.load / rates).max(axis=1) * num_bytes
            before = step.count * waiting + (before if index else 0.0)
            moving = step.count * carrying + (moving if index else 0.0)
        return before + (machine.endpoint_ns or 0), moving


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """The phases of a transfer, one after another.  Groups of different shapes have footprints of their own."""

    groups: Ints
    """Indices into the transfer's groups; those of `steps` and `uses` count among these."""
    passes: tuple[PassFootprint, ...]


def measure_collective(links: Links, kind: str, groups: Groups) -> list[Footprint]:
    """By the machine's algorithms; groups of one shape together."""
    machine = links.machine
    shapes: dict[tuple[object, ...], list[int]] = {}
    for index, group in enumerate(groups):
        dims = machine.list_dims(group)
        shapes.setdefault((dims if machine.is_filled(group) else dims[:1], len(group)), []).append(index)
    return [
        _measure(links, indices, lay_out(machine, kind, np.array([groups[index] for index in indices], np.int64)))
        for indices in shapes.values()
    ]


def measure_pairs(links: Links, pairs: Groups) -> Footprint:
    return _measure(links, range(len(pairs)), lay_out_pairs(pairs))


def _measure(links: Links, indices: Sequence[int], phases: Sequence[Phase]) -> Footprint:
    return Footprint(np.array(indices, np.int64), tuple(_measure_phase(links, each, len(indices)) for each in phases))


def _measure_phase(links: Links, phase: Phase, num_groups: int) -> PassFootprint:
    measured, own, lines = [], dict[tuple[int, int], float](), phase.lines
    for step in phase.steps:
        source, target, shares = step.messages(lines.shape[1])
        loads = np.tile(shares * phase.share, len(lines))
        of_message = np.repeat(phase.group, source.size)
        routes = links.route(lines[:, source].reshape(-1), lines[:, target].reshape(-1))
        reduced = step.reduced * phase.share
        measured.append(measure_step(links, routes, loads, of_message, num_groups, step.count, reduced))
        add_uses(own, routes, loads * step.count, of_message)
    return PassFootprint(phase.dim, tuple(measured), pack_uses(own))


def measure_step(
    links: Links, routes: Routes, loads: Floats, of_message: Ints, num_groups: int, count: int, reduced: float
) -> StepFootprint:
    """Hops and the busiest link of each group, by dim."""
    num_dims = len(links.machine.dims)
    dims = links.slot_dim[routes.link % links.slots]
    carried = routes.loads(loads, links)[routes.link]
    busiest = np.zeros((num_groups, num_dims))
    np.maximum.at(busiest, (of_message[routes.message], dims), carried)
    hops_of = np.zeros((routes.num_messages, num_dims))
    np.add.at(hops_of, (routes.message, dims), 1)
    longest = np.zeros(num_groups, np.int64)
    total = hops_of.sum(axis=1)
    order = np.argsort(total, kind="stable")  # the longest way of a group is written last
    longest[of_message[order]] = order
    hops = hops_of[longest]
    hops[~np.isin(np.arange(num_groups), of_message)] = 0
    return StepFootprint(hops, busiest, count, reduced)


def add_uses(own: dict[tuple[int, int], float], routes: Routes, loads: Floats, of_message: Ints) -> None:
    """To the bytes of each (group, link)."""
    for key, load in zip(
        zip(of_message[routes.message].tolist(), routes.link.tolist(), strict=True),
        loads[routes.message].tolist(),
        strict=True,
    ):
        own[key] = own.get(key, 0.0) + load


def pack_uses(own: dict[tuple[int, int], float]) -> Uses:
    """As columns, by group and link."""
    keys = np.array(sorted(own), np.int64).reshape(-1, 2)
    return Uses(keys[:, 0], keys[:, 1], np.array([own[key] for key in sorted(own)], np.float64))
