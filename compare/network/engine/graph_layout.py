"""A graph laid out for the engine: its classes of ranks, and the groups of classes that each node takes part in.

Nothing here depends on rates: machines of one shape share one plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compare.network.engine.classes import ClassGroup, Traffic, list_class_groups, relate_ranks
from compare.network.engine.compiled import Choices, as_torus, measure_compiled
from compare.network.engine.faults import check_graph
from compare.network.engine.footprint import Footprint, measure_collective, measure_pairs
from compare.network.engine.links import Links
from compare.network.graph.graph import BROADCAST, Graph, Transfer
from compare.network.machines.kinds import GREEDY, KINDS, SHARED
from compare.network.machines.machine import Machine
from compare.schedule.device_classes import Classes, group_devices
from compare.timeline.arrays import Ints
from compare.timeline.errors import TimingError

_LIKE = {BROADCAST: "all-gather", "ragged-all-to-all": "all-to-all"}
"""Kinds without an algorithm of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A graph on machines of one shape."""

    graph: Graph
    links: Links
    """Whose rates are those of the machine it was laid out for."""
    traffics: tuple[Traffic, ...]
    traffic_of: Ints
    """(transfers,)"""
    classes: Classes
    groups: tuple[tuple[ClassGroup, ...], ...]
    """Of each traffic, the groups of classes."""
    groups_of: tuple[Mapping[tuple[int, int], tuple[int, ...]], ...]
    """For each traffic, (class, role) -> indices into its groups of classes."""

    @classmethod
    def of(cls, graph: Graph, machine: Machine, choices: Choices | None = None) -> "Plan":
        """choices: the compiler's algorithms, which go before the machine's where the machine is a torus.

        `TimingError` where the machine has another number of ranks, an algorithm does not exist, or the graph's
        transfers do not fit together.
        """
        if graph.num_ranks != machine.num_ranks:
            raise TimingError(
                f"{graph.name} has {graph.num_ranks:,} ranks, and {machine.name} {machine.num_ranks:,}: its dims have "
                "to multiply to the ranks"
            )
        if machine.multi == GREEDY:
            raise TimingError("multi: greedy is of one collective alone; write local-bw-aware or baseline")
        for kind in KINDS:
            if (last := machine.algorithms.of(kind)[-1]).through_all:
                raise TimingError(f"{last.name} is ASTRA-sim's alone; write {last.in_one_dim} for each dim")
        check_graph(graph)
        links = Links.of(machine)
        torus = as_torus(machine) if choices and machine.links == SHARED else None
        keys: dict[tuple[object, ...], int] = {}
        traffics: list[Traffic] = []
        traffic_of = []
        for transfer in graph.transfers:
            algorithm = choices.get(transfer.collective) if choices and torus else None
            key = (id(transfer.groups), transfer.kind, algorithm)
            if key not in keys:
                keys[key] = len(traffics)
                is_compiled = algorithm is not None and torus is not None and not transfer.are_pairs
                if algorithm is not None and torus is not None and is_compiled:
                    footprints = [measure_compiled(links, torus, transfer.kind, transfer.groups, algorithm)]
                else:
                    footprints = _measure(links, transfer)
                traffics.append(Traffic(transfer.groups, transfer.are_pairs, tuple(footprints), is_compiled))
            traffic_of.append(keys[key])
        # Message by message, the order in a queue tells alike ranks apart.
        colors = graph.table_of if machine.links == SHARED else np.arange(graph.num_ranks)
        relations = [relate_ranks(traffic, links.slots) for traffic in traffics]
        classes = group_devices(colors, relations)
        groups = tuple(
            list_class_groups(traffic, relation, classes, links.slots)
            for traffic, relation in zip(traffics, relations, strict=True)
        )
        return cls(
            graph, links, tuple(traffics), np.array(traffic_of, np.int64), classes, groups, tuple(map(_index, groups))
        )


def _measure(links: Links, transfer: Transfer) -> list[Footprint]:
    if transfer.are_pairs:
        return [measure_pairs(links, transfer.groups)]
    return measure_collective(links, kind_of(transfer), transfer.groups)


def kind_of(transfer: Transfer) -> str:
    """The kind by whose algorithm it runs.  Raises `TimingError` where there is none."""
    kind = _LIKE.get(transfer.kind, transfer.kind)
    if kind not in KINDS:
        raise TimingError(f"{transfer.kind} ({transfer.collective or transfer.key}) cannot be simulated")
    return kind


def _index(groups: tuple[ClassGroup, ...]) -> dict[tuple[int, int], tuple[int, ...]]:
    rows: dict[tuple[int, int], list[int]] = {}
    for place, group in enumerate(groups):
        for member in group.members:
            rows.setdefault(member, []).append(place)
    return {member: tuple(places) for member, places in rows.items()}
