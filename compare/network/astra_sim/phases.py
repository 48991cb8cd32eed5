"""What ASTRA-sim makes of a collective: chunks, and the phases that each goes through, with their queues.

Source: `Sys::generate_collective`, `Sys::determine_chunk_size`, `QueueLevelHandler`, `CommunicatorGroup`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compare.network.algorithms import list_phases
from compare.network.machines.collective import Collective
from compare.network.machines.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    DOUBLE_BINARY_TREE,
    LOCAL_BW_AWARE,
    REDUCE_SCATTER,
    RING,
)
from compare.network.machines.machine import MOST_CHUNKS, Algorithm, Machine
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One algorithm in one dim, over one chunk."""

    kind: str
    level: int
    """The dim, or 0 for a ring over listed ranks."""
    algorithm: Algorithm
    num_bytes: int
    """That a rank brings into it."""
    queue: int
    """Of the dim."""
    step: int
    """1 or -1: which way a ring turns."""
    root_last: bool = True
    """Which of the two trees."""


@dataclass(frozen=True, slots=True)
class Level:
    """What a phase goes through: a dim, or listed ranks."""

    size: int
    algorithm: Algorithm
    listed: bool
    """A sub-group."""


def find_levels(machine: Machine, collective: Collective) -> tuple[Level, ...]:
    """All ranks, in any order, go through the dims; a part of them is one ring, whatever the dims."""
    algorithms = machine.algorithms.of(collective.kind)
    if collective.group is not None and len(collective.group) < machine.num_ranks:
        algorithm = algorithms[0] if len(algorithms) == 1 else Algorithm(RING)
        if algorithm.name == DOUBLE_BINARY_TREE:
            raise TimingError("ASTRA-sim has no double binary tree over a sub-group")
        return (Level(len(collective.group), algorithm, True),)
    return tuple(
        Level(machine.num_ranks if algorithm.through_all else dim.size, algorithm, False)
        for dim, algorithm in zip(machine.dims, algorithms, strict=False)
    )


def cut_chunks(machine: Machine, collective: Collective) -> tuple[int, int]:
    """Number of chunks, and bytes of each: all are as large as the first, and no smaller than a byte a rank."""
    size = collective.num_bytes
    chunk = size // machine.chunks
    if collective.kind != ALL_GATHER and chunk < machine.num_ranks:
        chunk = machine.num_ranks
        size = machine.chunks * chunk
    if chunk == 0:
        raise TimingError(f"an all-gather of {size} bytes in {machine.chunks} chunks has chunks without bytes")
    count = -(-size // chunk)
    if count > MOST_CHUNKS:
        raise TimingError(f"at most {MOST_CHUNKS:,} chunks, not {count:,}")
    return count, chunk


class _Queues:
    """Which queue of a dim the next phase takes.  One counter for all, one for the first half, one for the second."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._next, self._first, self._last = 0, 0, count // 2

    def any(self) -> tuple[int, int]:
        """Queue, and direction: the second half of several turns the other way."""
        queue = self._next
        self._next = (queue + 1) % self._count
        return queue, -1 if self._count > 1 and queue >= self._count // 2 else 1

    def first_half(self) -> tuple[int, int]:
        queue = self._first
        self._first = 0 if queue + 1 >= self._count // 2 else queue + 1
        return queue, 1

    def second_half(self) -> tuple[int, int]:
        queue = self._last
        self._last = self._count // 2 if queue + 1 >= self._count else queue + 1
        return queue, -1


class Turns:
    """Whose turn it is on a rank: the next queue of each dim, and the next of the two trees of each kind and dim."""

    def __init__(self, machine: Machine) -> None:
        self.queues = [_Queues(machine.queues) for _ in machine.dims]
        self.trees: dict[tuple[str, int], int] = defaultdict(int)


def plan_chunks(machine: Machine, collective: Collective, turns: Turns | None = None) -> tuple[tuple[Phase, ...], ...]:
    """The phases of every chunk, in the order in which chunks are issued.

    turns: where earlier collectives of the rank have left them.
    """
    levels = find_levels(machine, collective)
    count, chunk = cut_chunks(machine, collective)
    turns = turns or Turns(machine)
    queues, trees = turns.queues[: len(levels)], turns.trees
    chunks = []
    for _ in range(count):
        num_bytes = chunk
        phases = []
        for kind, index, (queue, step) in _visits(machine, collective.kind, queues, collective.dims):
            level = levels[index]
            phase = Phase(
                kind=kind,
                level=index,
                algorithm=level.algorithm,
                num_bytes=num_bytes,
                queue=index * machine.queues + queue,
                step=step,
                root_last=trees[collective.kind, index] % 2 == 0,
            )
            trees[collective.kind, index] += 1
            phases.append(phase)
            num_bytes = leave_bytes(phase, level.size)
        chunks.append(tuple(phases))
    return tuple(chunks)


def _visits(
    machine: Machine, kind: str, queues: Sequence[_Queues], dims: tuple[int, ...] | None
) -> list[tuple[str, int, tuple[int, int]]]:
    """Kind, level and queue of each phase of the next chunk.  dims: the levels that are visited; all where `None`."""
    visits = list_phases(machine, kind, range(len(queues)) if dims is None else dims)
    if kind != ALL_REDUCE or machine.multi != LOCAL_BW_AWARE:
        return [(each, level, queues[level].any()) for each, level, _ in visits]
    return [
        (each, level, queues[level].second_half() if each == ALL_GATHER else queues[level].first_half())
        for each, level, _ in visits
    ]


def endpoint_ticks(machine: Machine) -> int:
    """Before a rank acts on a message; ASTRA-sim's default is 10."""
    return 10 if machine.endpoint_ns is None else machine.endpoint_ns


def leave_bytes(phase: Phase, size: int) -> int:
    """Bytes that a rank has after a phase over `size` ranks; a tree leaves what came, whatever the kind."""
    if phase.algorithm.name == DOUBLE_BINARY_TREE:
        return phase.num_bytes
    if phase.kind == REDUCE_SCATTER:
        return phase.num_bytes // size
    return phase.num_bytes * size if phase.kind == ALL_GATHER else phase.num_bytes
