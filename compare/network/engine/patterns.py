"""The messages of an algorithm over positions 0 … n-1, step by step; where the positions are is the traffic's.

The same algorithms as in closed form in `native.steps`, which has their sources; a test compares the two.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

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
)
from compare.network.trees import grow_tree
from compare.timeline.arrays import Floats, Ints
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Alike steps: who sends how much to whom, all at once."""

    source: Ints
    target: Ints
    share: Floats
    """Bytes of each message, per byte of a rank's input."""
    count: int = 1
    reduced: float = 0.0
    """Bytes that the busiest rank reduces after the messages, per byte of a rank's input."""


def list_patterns(algorithm: Algorithm, kind: str, size: int) -> list[Pattern]:
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


def _shifts(size: int, shifts: Iterable[tuple[int, float]]) -> tuple[Ints, Ints, Floats]:
    """Every rank sends to those at some distances; (distance, share) pairs."""
    ranks = np.arange(size)
    rows = [(ranks, (ranks + distance) % size, np.full(size, share)) for distance, share in shifts]
    source, target, share = (np.concatenate(part) for part in zip(*rows, strict=True))
    return source, target, share


def _ring(kind: str, size: int, *, two_ways: bool) -> list[Pattern]:
    if kind == ALL_TO_ALL:
        if not two_ways:
            return [Pattern(*_shifts(size, [(1, (size - step) / size)])) for step in range(1, size)]
        steps = []
        for step in range(1, size // 2 + 1):
            up, down = size // 2 - step + 1, (size - 1) // 2 - step + 1
            ways = [(1, up / size), *([(-1, down / size)] if down > 0 else [])]
            steps.append(Pattern(*_shifts(size, ways)))
        return steps
    share = 1.0 if kind == ALL_GATHER else 1 / size
    messages = _shifts(size, [(1, share / 2), (-1, share / 2)] if two_ways else [(1, share)])
    gather, scatter = Pattern(*messages, size - 1), Pattern(*messages, size - 1, share)
    return {ALL_REDUCE: [scatter, gather], REDUCE_SCATTER: [scatter]}.get(kind, [gather])


def _direct(kind: str, size: int, window: int | None) -> list[Pattern]:
    width = size - 1 if window is None else min(window, size - 1)
    share = 1.0 if kind == ALL_GATHER else 1 / size
    rounds = [range(start, min(start + width, size)) for start in range(1, size, width)]
    messages = [_shifts(size, [(distance, share) for distance in distances]) for distances in rounds]
    gather = [Pattern(*each) for each in messages]
    scatter = [Pattern(*each, 1, share * len(distances)) for each, distances in zip(messages, rounds, strict=True)]
    return {ALL_REDUCE: scatter + gather, REDUCE_SCATTER: scatter}.get(kind, gather)


def _halving_doubling(kind: str, size: int) -> list[Pattern]:
    levels = _levels(size, HALVING_DOUBLING)
    if kind == ALL_TO_ALL:
        raise TimingError("halving-doubling makes no all-to-all")
    ranks = np.arange(size)
    total = float(size) if kind == ALL_GATHER else 1.0
    scatter = []
    for level in range(levels):
        share = total / 2 ** (level + 1)
        scatter.append(Pattern(ranks, ranks ^ (1 << level), np.full(size, share), 1, share))
    gather = [Pattern(each.source, each.target, each.share) for each in reversed(scatter)]
    return {ALL_REDUCE: scatter + gather, REDUCE_SCATTER: scatter}.get(kind, gather)


def _double_binary_tree(kind: str, size: int) -> list[Pattern]:
    levels = _levels(size, DOUBLE_BINARY_TREE)
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
        up.append(Pattern(below, above, half, 1, 0.5 * int(np.bincount(above).max())))
        down.append(Pattern(above, below, half))
    return up + down[::-1]


def _custom(custom: CustomAlgorithm, kind: str, size: int) -> list[Pattern]:
    share = byte_share(custom)
    return [
        Pattern(
            np.array([send.source for send in sends], np.int64), np.array([send.target for send in sends], np.int64),
            np.full(len(sends), share), 1, most_reduced(sends) * share,
        )
        for sends in list_levels(custom, kind, size)
    ]  # fmt: skip


def _levels(size: int, name: str) -> int:
    levels = size.bit_length() - 1
    if size != 1 << levels:
        raise TimingError(f"{name} over {size} ranks: the number of ranks is a power of two")
    return levels
