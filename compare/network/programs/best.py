"""For each collective of a program the fastest algorithm on a machine, alone, and how far the chosen one is from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.network.engine.footprint import Footprint, measure_collective
from compare.network.engine.graph_layout import kind_of
from compare.network.engine.links import Links
from compare.network.machines.changes import set_algorithms
from compare.network.machines.custom import collect_custom
from compare.network.machines.kinds import (
    ALL_REDUCE,
    BASELINE,
    CUSTOM,
    DIRECT,
    DOUBLE_BINARY_TREE,
    HALVING_DOUBLING,
    LOCAL_BW_AWARE,
    RING,
    TWO_WAY_RING,
)
from compare.network.machines.machine import Algorithm, Machine
from compare.network.programs.simulation import Program, Simulation
from compare.timeline.errors import TimingError

CANDIDATES = (RING, TWO_WAY_RING, DIRECT, HALVING_DOUBLING, DOUBLE_BINARY_TREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAlgorithm:
    """One collective, alone on the machine."""

    collective: str
    kind: str
    num_bytes: int
    executions: int
    by_compiler: bool
    """Whether the compiler chose its algorithm; else the machine does."""
    chosen_ns: float
    best: str
    """The word of the fastest candidate; "" where there is none."""
    best_ns: float
    """By it; less than nothing is lost where the chosen one is faster than every candidate."""

    @property
    def lost_ns(self) -> float:
        """Over all executions of a step."""
        return self.executions * (self.chosen_ns - self.best_ns)

    @property
    def distance(self) -> float:
        """How much longer the chosen one takes, in %; negative where it is faster."""
        return 100 * (self.chosen_ns / self.best_ns - 1)


def list_best(program: Program, simulation: Simulation) -> list[BestAlgorithm]:
    """Every collective but permutes, the one with most to gain first.  Raises `TimingError` as `Program.simulate`."""
    layout, machine = program.layout(simulation), simulation.machine
    links = Links.of(machine)
    executions: dict[tuple[str, int, int], list[int]] = {}
    for index, transfer in enumerate(layout.graph.transfers):
        if not transfer.are_pairs:
            key = (transfer.collective, transfer.num_bytes, id(transfer.groups))
            executions.setdefault(key, []).append(index)
    timed: dict[tuple[int, str, int], tuple[str, float]] = {}
    rows = []
    for indices in executions.values():
        transfer = layout.graph.transfers[indices[0]]
        kind = kind_of(transfer)
        chosen = layout.traffics[int(layout.traffic_of[indices[0]])]
        chosen_ns = time_alone(machine, chosen.footprints, transfer.num_bytes)
        alike = (id(transfer.groups), kind, transfer.num_bytes)
        if alike not in timed:
            times = list_candidates(machine, links, kind, transfer.groups, transfer.num_bytes)
            timed[alike] = min(times, key=lambda time: time[1], default=("", chosen_ns))
        best, best_ns = timed[alike]
        rows.append(
            BestAlgorithm(
                collective=transfer.collective,
                kind=transfer.kind,
                num_bytes=transfer.num_bytes,
                executions=len(indices),
                by_compiler=chosen.is_compiled,
                chosen_ns=chosen_ns,
                best=best,
                best_ns=best_ns,
            )
        )
    return sorted(rows, key=lambda row: (-row.lost_ns, row.collective))


def list_candidates(
    machine: Machine, links: Links, kind: str, groups: Groups, num_bytes: int
) -> Iterator[tuple[str, float]]:
    """(word, ns) of each algorithm that exists for these groups."""
    words = [Algorithm(word) for word in CANDIDATES]
    words += [Algorithm(CUSTOM, custom=each) for each in collect_custom(machine).values() if each.kind == kind]
    for algorithm in words:
        for multi in (LOCAL_BW_AWARE, BASELINE) if kind == ALL_REDUCE and len(machine.dims) > 1 else (machine.multi,):
            other = replace(set_algorithms(machine, kind, (algorithm,)), multi=multi)
            try:
                footprints = measure_collective(replace(links, machine=other), kind, groups)
            except TimingError:  # no such algorithm for this kind or number of ranks
                continue
            yield (
                algorithm.text + (f" ({multi})" if multi != machine.multi else ""),
                time_alone(other, footprints, num_bytes),
            )


def time_alone(machine: Machine, footprints: Sequence[Footprint], num_bytes: float) -> float:
    """ns of the slowest group, with all groups of the collective at once and nothing else."""
    slowest = 0.0
    for footprint in footprints:
        total = np.zeros(footprint.groups.size)
        for part in footprint.passes:
            before, moving = part.times(machine, num_bytes)
            total += before + moving
        slowest = max(slowest, float(total.max(initial=0.0)))
    return machine.launch_ns + slowest
