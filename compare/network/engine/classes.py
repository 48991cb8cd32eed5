"""Classes of ranks that do the same at the same time: each class is played once, by its first rank.

Colour refinement: ranks differ by their nodes, by the transfers that they are in and that cross their links, and by the
classes of their partners, until nothing changes.  Sums of mixed 64-bit numbers stand for multisets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.hlo.devices.groups import Groups
from compare.network.engine.footprint import Footprint, Uses
from compare.timeline.arrays import Column, Floats, Ints

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The groups of alike transfers, and what they put on the links."""

    groups: Groups
    are_pairs: bool
    footprints: tuple[Footprint, ...]
    is_compiled: bool = False
    """Whether they run by the compiler's algorithm."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassGroup:
    """Groups of a traffic that do the same at the same time."""

    footprint: int
    index: int
    """One of them, among the footprint's groups."""
    group: int
    """The same, among the transfer's groups."""
    members: tuple[tuple[int, int], ...]
    """(class, role): role 0 a member or the source of a message, 1 its target."""
    uses: tuple[tuple[tuple[int, float], ...], ...]
    """For each pass, (link of a class, bytes on it per byte of input), all these groups together."""


@dataclass(frozen=True, slots=True, eq=False)
class RankClasses:
    """The class of every rank, numbered in order of first ranks, and the groups of classes of each traffic."""

    of: Ints
    first: Ints
    groups: tuple[tuple[ClassGroup, ...], ...]

    @property
    def count(self) -> int:
        return int(self.first.size)


def group_ranks(table_of: Ints, traffics: Sequence[Traffic], *, slots: int) -> RankClasses:
    """table_of: of each rank.  slots: links that a rank has."""
    columns = [_Columns.of(traffic, slots) for traffic in traffics]
    color = _number(table_of)
    while True:
        hashes = _mix(color.astype(np.uint64))
        total = hashes.copy()
        for column in columns:
            column.spread(hashes, total)
        after = _number(total)
        if after.max() == color.max():
            break
        color = after
    of, first = _by_first(color)
    hashes = _mix(of.astype(np.uint64))
    groups = tuple(
        _class_groups(traffic, column, column.group_hashes(hashes), of, first, slots)
        for traffic, column in zip(traffics, columns, strict=True)
    )
    return RankClasses(of, first, groups)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """A traffic as columns: (group, rank, role) of members, (group, rank, slot and load) of link uses."""

    seed: Hashes
    """Of each group: its footprint, whatever its ranks."""
    group: Ints
    rank: Ints
    role: Hashes
    use_group: Ints
    use_rank: Ints
    use: Hashes

    @classmethod
    def of(cls, traffic: Traffic, slots: int) -> "_Columns":
        sizes = np.array([len(group) for group in traffic.groups], np.int64)
        group = np.repeat(np.arange(sizes.size), sizes)
        rank = np.array([rank for members in traffic.groups for rank in members], np.int64)
        first = np.cumsum(sizes) - sizes
        role = (np.arange(rank.size) - first[group]) if traffic.are_pairs else np.zeros(rank.size, np.int64)
        seed = np.zeros(sizes.size, np.uint64)
        parts: list[tuple[Ints, Ints, Hashes]] = []
        for index, footprint in enumerate(traffic.footprints):
            seed[footprint.groups] = np.uint64(index + 1)
            for place, part in enumerate(footprint.passes):
                for step in part.steps:
                    rows = np.concatenate([step.hops, step.load], axis=1)
                    seed[footprint.groups] = _mix(seed[footprint.groups] + _number(rows.round(9)).astype(np.uint64))
                uses = part.uses
                words = _mix(_bits(uses.load)) + _mix((uses.link % slots * 64 + place).astype(np.uint64))
                parts.append((footprint.groups[uses.group], uses.link // slots, words))
        use_group, use_rank, use = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(seed, group, rank, role.astype(np.uint64), use_group, use_rank, use)

    def group_hashes(self, hashes: Hashes) -> Hashes:
        total = self.seed.copy()
        np.add.at(total, self.group, _mix(hashes[self.rank] + self.role))
        np.add.at(total, self.use_group, _mix(hashes[self.use_rank] ^ self.use))
        return _mix(total)

    def spread(self, hashes: Hashes, total: Hashes) -> None:
        """Adds to each rank what its groups, and those on its links, are."""
        groups = self.group_hashes(hashes)
        salt = _mix(np.array([self.rank.size + 1], np.uint64))
        np.add.at(total, self.rank, _mix(groups[self.group] ^ self.role ^ salt))
        np.add.at(total, self.use_rank, _mix(groups[self.use_group] + self.use))


def _class_groups(
    traffic: Traffic, columns: _Columns, hashes: Hashes, of: Ints, first: Ints, slots: int
) -> tuple[ClassGroup, ...]:
    """Those of the first rank of each class."""
    place_of = {}
    for index, footprint in enumerate(traffic.footprints):
        for place, group in enumerate(footprint.groups.tolist()):
            place_of[group] = index, place
    is_first = first[of[columns.rank]] == columns.rank
    kept = dict.fromkeys(columns.group[is_first].tolist())
    by_hash = {int(hashes[group]): group for group in reversed(kept)}
    links = [[_class_links(part.uses, footprint, hashes, of, first, slots) for part in footprint.passes]
             for footprint in traffic.footprints]  # fmt: skip
    rows = []
    for word, group in reversed(by_hash.items()):
        index, place = place_of[group]
        roles = enumerate(traffic.groups[group]) if traffic.are_pairs else ((0, rank) for rank in traffic.groups[group])
        members = tuple(dict.fromkeys((int(of[rank]), role) for role, rank in roles))
        rows.append(ClassGroup(index, place, group, members, tuple(part.get(word, ()) for part in links[index])))
    return tuple(rows)


def _class_links(
    uses: Uses, footprint: Footprint, hashes: Hashes, of: Ints, first: Ints, slots: int
) -> dict[int, tuple[tuple[int, float], ...]]:
    """By hash of a group, the links of first ranks that it and those like it use."""
    rank = uses.link // slots
    kept = first[of[rank]] == rank
    words = hashes[footprint.groups[uses.group[kept]]]
    link = of[rank[kept]] * slots + uses.link[kept] % slots
    loads: dict[int, dict[int, float]] = {}
    for word, number, load in zip(words.tolist(), link.tolist(), uses.load[kept].tolist(), strict=True):
        of_group = loads.setdefault(word, {})
        of_group[number] = of_group.get(number, 0.0) + load
    return {word: tuple(of_group.items()) for word, of_group in loads.items()}


def _by_first(color: Ints) -> tuple[Ints, Ints]:
    _, first, inverse = np.unique(color, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[inverse.reshape(-1)], first[order]


def _number(rows: Column | Hashes) -> Ints:
    """One number for each row; equal rows have equal numbers."""
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1], np.int64).reshape(-1)


def _bits(values: Floats) -> Hashes:
    return values.round(9).view(np.uint64)


def _mix(words: Hashes) -> Hashes:
    """Finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
