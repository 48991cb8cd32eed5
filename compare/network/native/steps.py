"""The steps of each algorithm in one dim: latency, bytes on the busiest link, bytes reduced.

A step takes `hops × latency + bytes on the busiest link ÷ bandwidth` (cut-through: a message pays its bytes once),
and a reduction two reads and a write.  Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH" (2005) for rings, direct exchange and halving-doubling; Sanders, Speck and Träff,
"Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009) for the trees.
"""

from collections import Counter
from dataclasses import dataclass

from compare.network.machines.custom import byte_share, list_levels, most_reduced
from compare.network.machines.machine import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    DIRECT,
    DOUBLE_BINARY_TREE,
    HALVING_DOUBLING,
    REDUCE_SCATTER,
    TWO_WAY_RING,
    Algorithm,
    CustomAlgorithm,
    Dim,
)
from compare.network.native.loads import Load, message_load, shift_load, swap_load
from compare.network.trees import grow_tree
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True)
class Step:
    """Alike steps of an algorithm in one dim."""

    load: Load
    count: int = 1
    reduced_bytes: float = 0.0
    """By the busiest rank, after the messages have arrived."""


def list_steps(algorithm: Algorithm, kind: str, num_bytes: float, dim: Dim) -> list[Step]:
    """The steps of one collective in one dim.  Raises `TimingError` where the algorithm has none."""
    if algorithm.custom is not None:
        return _custom(algorithm.custom, kind, num_bytes, dim)
    if algorithm.name == DIRECT:
        return _direct(kind, num_bytes, dim, algorithm.window)
    if algorithm.name == HALVING_DOUBLING:
        return _halving_doubling(kind, num_bytes, dim)
    if algorithm.name == DOUBLE_BINARY_TREE:
        return _double_binary_tree(kind, num_bytes, dim)
    return _ring(kind, num_bytes, dim, two_ways=algorithm.name == TWO_WAY_RING)


def _ring(kind: str, num_bytes: float, dim: Dim, *, two_ways: bool) -> list[Step]:
    """All-reduce: n-1 steps of S/n with a reduction, and n-1 without; reduce-scatter and all-gather one half of that.
    Two ways: one half of every message goes each way.  All-to-all: n-1 steps, in the k-th the n-k messages that go
    on; two ways, floor(n/2) steps, and every message the shorter way."""
    size = dim.size
    if kind == ALL_TO_ALL:
        return _ring_all_to_all(num_bytes / size, dim, two_ways=two_ways)
    share = num_bytes if kind == ALL_GATHER else num_bytes / size
    load = shift_load(dim, (1, -1), share / 2) if two_ways else shift_load(dim, (1,), share)
    gather = Step(load, size - 1)
    scatter = Step(load, size - 1, share)
    return {ALL_REDUCE: [scatter, gather], REDUCE_SCATTER: [scatter]}.get(kind, [gather])


def _ring_all_to_all(share: float, dim: Dim, *, two_ways: bool) -> list[Step]:
    size = dim.size
    if not two_ways:
        return [Step(shift_load(dim, (1,), share * (size - step))) for step in range(1, size)]
    steps = []
    for step in range(1, size // 2 + 1):
        up = size // 2 - step + 1
        down = (size - 1) // 2 - step + 1
        ahead, back = shift_load(dim, (1,), share * up), shift_load(dim, (-1,), share * down)
        hops = max(ahead.hops, back.hops) if down > 0 else ahead.hops
        steps.append(Step(Load(hops, ahead.up_bytes + back.up_bytes, ahead.down_bytes + back.down_bytes)))
    return steps


def _direct(kind: str, num_bytes: float, dim: Dim, window: int | None) -> list[Step]:
    """Rounds of `window` messages of S/n to ranks ever further on; an all-reduce makes two such passes."""
    size, others = dim.size, dim.size - 1
    width = others if window is None else min(window, others)
    share = num_bytes if kind == ALL_GATHER else num_bytes / size
    rounds = [range(start, min(start + width, size)) for start in range(1, size, width)]
    loads = [(shift_load(dim, distances, share), share * len(distances)) for distances in rounds]
    gather = [Step(load) for load, _ in loads]
    scatter = [Step(load, 1, received) for load, received in loads]
    return {ALL_REDUCE: scatter + gather, REDUCE_SCATTER: scatter}.get(kind, gather)


def _halving_doubling(kind: str, num_bytes: float, dim: Dim) -> list[Step]:
    """log2(n) swaps of S/2, S/4, … at distances 1, 2, …, each reduced; and back."""
    levels = _levels(dim, HALVING_DOUBLING)
    if kind == ALL_TO_ALL:
        raise TimingError("halving-doubling makes no all-to-all")
    total = num_bytes * dim.size if kind == ALL_GATHER else num_bytes
    shares = [total / 2 ** (level + 1) for level in range(levels)]
    scatter = [Step(swap_load(dim, 1 << level, share), 1, share) for level, share in enumerate(shares)]
    gather = [Step(step.load) for step in reversed(scatter)]
    return {ALL_REDUCE: scatter + gather, REDUCE_SCATTER: scatter}.get(kind, gather)


def _double_binary_tree(kind: str, num_bytes: float, dim: Dim) -> list[Step]:
    """Two trees at once, each with half of the bytes: log2(n) levels up with reductions, and down again."""
    levels = _levels(dim, DOUBLE_BINARY_TREE)
    if kind != ALL_REDUCE:
        raise TimingError(f"a double binary tree makes an all-reduce, no {kind}")
    ranks, half = tuple(range(dim.size)), num_bytes / 2
    by_level: list[list[tuple[int, int]]] = [[] for _ in range(levels)]
    for root_last in (True, False):
        tree = grow_tree(ranks, root_last=root_last)
        heights = {rank: 0 for rank, branch in tree.items() if not branch.children}
        for level in range(levels):
            for rank in [rank for rank, height in heights.items() if height == level]:
                parent = tree[rank].parent
                if parent is not None:
                    by_level[level].append((rank, parent))
                    heights[parent] = level + 1
    up, down = [], []
    for edges in by_level:
        children = Counter(parent for _, parent in edges)
        load = message_load(dim, [(child, parent, half) for child, parent in edges])
        up.append(Step(load, 1, half * max(children.values())))
        down.append(Step(message_load(dim, [(parent, child, half) for child, parent in edges])))
    return up + down[::-1]


def _custom(custom: CustomAlgorithm, kind: str, num_bytes: float, dim: Dim) -> list[Step]:
    """Step after step of messages that leave at once."""
    size = byte_share(custom) * num_bytes
    return [
        Step(
            message_load(dim, [(send.source, send.target, size) for send in sends]), 1, most_reduced(sends) * size
        )
        for sends in list_levels(custom, kind, dim.size)
    ]  # fmt: skip


def _levels(dim: Dim, name: str) -> int:
    levels = dim.size.bit_length() - 1
    if dim.size != 1 << levels:
        raise TimingError(f"{name} over {dim.size} ranks: the number of ranks is a power of two")
    return levels
