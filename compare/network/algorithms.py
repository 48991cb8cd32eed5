"""The messages of every algorithm of a collective in one dim, step by step, for every machine of `compare.network`.

Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005) for
rings, direct exchange and halving-doubling; Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
broadcast, reduction and scan" (2009) for the trees.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.network.machines.custom import byte_share, list_levels, most_reduced
from compare.network.machines.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BASELINE,
    DIRECT,
    DOUBLE_BINARY_TREE,
    HALVING_DOUBLING,
    REDUCE_SCATTER,
    TWO_WAY_RING,
)
from compare.network.machines.machine import Algorithm, CustomAlgorithm, Machine
from compare.timeline.arrays import Floats, Ints
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Identical steps: messages between positions 0 … n-1, all sent at once."""

    source: Ints
    target: Ints
    share: Floats
    """Bytes of each message, per byte of a rank's input."""
    count: int = 1
    reduced: float = 0.0
    """Bytes that the busiest rank reduces after the messages, per byte of a rank's input."""
    is_turned: bool = False
    """Whether these are the messages of position 0, and every position sends the same as far on (modulo n)."""

    def messages(self, size: int) -> tuple[Ints, Ints, Floats]:
        """Source, target and share of the messages of all positions."""
        if not self.is_turned:
            return self.source, self.target, self.share
        ranks = np.arange(size)
        target = (ranks + self.target[:, None]) % size
        return np.tile(ranks, self.target.size), target.reshape(-1), np.repeat(self.share, size)


def list_phases(machine: Machine, kind: str, dims: Sequence[int]) -> list[tuple[str, int, float]]:
    """(kind, dim, bytes a rank brings per byte of its input) of each phase of a collective over some dims."""
    *first, last = dims
    order = [(kind, dim) for dim in dims]
    if kind == ALL_GATHER:
        order.reverse()
    elif kind == ALL_REDUCE and machine.multi != BASELINE:
        order = [
            *((REDUCE_SCATTER, dim) for dim in first),
            (ALL_REDUCE, last),
            *((ALL_GATHER, dim) for dim in reversed(first)),
        ]
    phases, share = [], 1.0
    for phase, dim in order:
        phases.append((phase, dim, share))
        size = machine.dims[dim].size
        share = {REDUCE_SCATTER: share / size, ALL_GATHER: share * size}.get(phase, share)
    return phases


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Steps along lines of ranks, all at once: position i of a line is its i-th rank."""

    dim: int
    """-1 where the lines are of any ranks."""
    steps: Sequence[Step]
    lines: Ints
    """(lines, positions)"""
    group: Ints
    """(lines,)"""
    share: float
    """Bytes that a rank brings, per byte of its input."""


def lay_out(machine: Machine, kind: str, ranks: Ints) -> list[Phase]:
    """A collective of groups of one shape, by the machine's algorithms.  ranks: (groups, ranks of each).

    Groups that fill dims go through them; others run the algorithm of the first dim in which their ranks differ, over
    the ranks in order.
    """
    algorithms, groups = machine.algorithms.of(kind), np.arange(len(ranks))
    dims = machine.list_dims(ranks[0].tolist())
    if not machine.is_filled(ranks[0].tolist()):
        return [Phase(-1, list_steps(algorithms[dims[0]], kind, ranks.shape[1]), ranks, groups, 1.0)]
    ranks = np.sort(ranks, axis=1)
    phases = []
    for each, dim, share in list_phases(machine, kind, dims):
        size, stride = machine.dims[dim].size, machine.stride(dim)
        first = ranks[ranks // stride % size == 0]
        lines = first[:, None] + stride * np.arange(size)
        steps = list_steps(algorithms[dim], each, size)
        phases.append(Phase(dim, steps, lines, np.repeat(groups, first.size // groups.size), share))
    return phases


def lay_out_pairs(pairs: Groups) -> list[Phase]:
    """Every pair sends a message, all at once."""
    step = Step(np.array([0]), np.array([1]), np.array([1.0]))
    return [Phase(-1, [step], np.array(pairs, np.int64).reshape(-1, 2), np.arange(len(pairs)), 1.0)]


def list_steps(algorithm: Algorithm, kind: str, size: int) -> list[Step]:
    """The steps of one collective over so many ranks.  Raises `TimingError` where the algorithm has none."""
    if size < 2:
        return []
    if algorithm.custom is not None:
        return _custom(algorithm.custom, kind, size)
    if algorithm.name == DIRECT:
        return _direct(kind, size, algorithm.window)
    if algorithm.name == HALVING_DOUBLING:
        return _halving_doubling(kind, size)
    if algorithm.name == DOUBLE_BINARY_TREE:
        return _double_binary_tree(kind, size)
    return _ring(kind, size, two_ways=algorithm.name == TWO_WAY_RING)


def _turned(size: int, shifts: Iterable[tuple[int, float]], *, count: int = 1, reduced: float = 0.0) -> Step:
    """Every rank sends to those at some distances; (distance, share) pairs."""
    distances, shares = zip(*shifts, strict=True)
    target = np.array(distances, np.int64) % size
    return Step(np.zeros_like(target), target, np.array(shares, np.float64), count, reduced, is_turned=True)


def _ring(kind: str, size: int, *, two_ways: bool) -> list[Step]:
    """All-reduce: n-1 steps of S/n with a reduction, and n-1 without; reduce-scatter and all-gather one half of that.
    Two ways: one half of every message goes each way.  All-to-all: n-1 steps, in the k-th the n-k messages that go
    on; two ways, floor(n/2) steps, and every message the shorter way."""
    if kind == ALL_TO_ALL and not two_ways:
        return [_turned(size, [(1, (size - step) / size)]) for step in range(1, size)]
    if kind == ALL_TO_ALL:
        ways = [(size // 2 - step, (size - 1) // 2 - step) for step in range(size // 2)]
        return [_turned(size, [(1, up / size), *[(-1, down / size)] * (down > 0)]) for up, down in ways]
    share = 1.0 if kind == ALL_GATHER else 1 / size
    shifts = [(1, share / 2), (-1, share / 2)] if two_ways else [(1, share)]
    gather = _turned(size, shifts, count=size - 1)
    scatter = _turned(size, shifts, count=size - 1, reduced=share)
    return {ALL_REDUCE: [scatter, gather], REDUCE_SCATTER: [scatter]}.get(kind, [gather])


def _direct(kind: str, size: int, window: int | None) -> list[Step]:
    """Rounds of `window` messages of S/n to ranks ever further on; an all-reduce makes two such passes."""
    width = size - 1 if window is None else min(window, size - 1)
    share = 1.0 if kind == ALL_GATHER else 1 / size
    rounds = [range(start, min(start + width, size)) for start in range(1, size, width)]
    gather = [_turned(size, [(distance, share) for distance in each]) for each in rounds]
    scatter = [_turned(size, [(distance, share) for distance in each], reduced=share * len(each)) for each in rounds]
    return {ALL_REDUCE: scatter + gather, REDUCE_SCATTER: scatter}.get(kind, gather)


def _halving_doubling(kind: str, size: int) -> list[Step]:
    """log2(n) swaps of S/2, S/4, … at distances 1, 2, …, each reduced; and back."""
    levels = _count_levels(size, HALVING_DOUBLING)
    if kind == ALL_TO_ALL:
        raise TimingError("halving-doubling makes no all-to-all")
    ranks = np.arange(size)
    total = float(size) if kind == ALL_GATHER else 1.0
    scatter = []
    for level in range(levels):
        share = total / 2 ** (level + 1)
        scatter.append(Step(ranks, ranks ^ (1 << level), np.full(size, share), reduced=share))
    gather = [Step(each.source, each.target, each.share) for each in reversed(scatter)]
    return {ALL_REDUCE: scatter + gather, REDUCE_SCATTER: scatter}.get(kind, gather)


def _double_binary_tree(kind: str, size: int) -> list[Step]:
    """Two trees at once, each with half of the bytes: log2(n) levels up with reductions, and down again."""
    levels = _count_levels(size, DOUBLE_BINARY_TREE)
    if kind != ALL_REDUCE:
        raise TimingError(f"a double binary tree makes an all-reduce, no {kind}")
    by_level: list[list[tuple[int, int]]] = [[] for _ in range(levels)]
    for root_last in (True, False):
        tree = grow_tree(tuple(range(size)), root_last=root_last)
        heights = {rank: 0 for rank, branch in tree.items() if not branch.children}
        for level in range(levels):
            for rank in [rank for rank, height in heights.items() if height == level]:
                parent = tree[rank].parent
                if parent is not None:
                    by_level[level].append((rank, parent))
                    heights[parent] = level + 1
    up, down = [], []
    for edges in by_level:
        below, above = (np.array(column, np.int64) for column in zip(*edges, strict=True))
        half = np.full(below.size, 0.5)
        up.append(Step(below, above, half, reduced=0.5 * int(np.bincount(above).max())))
        down.append(Step(above, below, half))
    return up + down[::-1]


def _custom(custom: CustomAlgorithm, kind: str, size: int) -> list[Step]:
    """Step after step of messages that leave at once."""
    share = byte_share(custom)
    return [
        Step(
            np.array([send.source for send in sends], np.int64),
            np.array([send.target for send in sends], np.int64),
            np.full(len(sends), share),
            reduced=most_reduced(sends) * share,
        )
        for sends in list_levels(custom, kind, size)
    ]


def _count_levels(size: int, name: str) -> int:
    levels = size.bit_length() - 1
    if size != 1 << levels:
        raise TimingError(f"{name} over {size} ranks: the number of ranks is a power of two")
    return levels


@dataclass(frozen=True, slots=True)
class Branch:
    """A rank in a binary tree: ranks above and below it."""

    parent: int | None
    children: tuple[int, ...]


def grow_tree(ranks: tuple[int, ...], *, root_last: bool) -> dict[int, Branch]:
    """One tree over the ranks in order: the root is the last (or the first), the others a full binary tree below it."""
    _count_levels(len(ranks), "a double binary tree")
    root, rest = (ranks[-1], ranks[:-1]) if root_last else (ranks[0], ranks[1:])
    middle = rest[len(rest) // 2]
    tree = {root: Branch(None, (middle,))}
    pending = [(rest, root)]
    while pending:
        part, parent = pending.pop()
        half = len(part) // 2
        sides = [side for side in (part[:half], part[half + 1 :]) if side]
        tree[part[half]] = Branch(parent, tuple(side[len(side) // 2] for side in sides))
        pending += [(side, part[half]) for side in sides]
    return tree
