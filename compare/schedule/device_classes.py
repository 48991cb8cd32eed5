"""Classes of devices that do the same at the same time: each class is simulated once, by its first device.

Colour refinement: devices differ by what they do alone, by the groups that they are in, by the groups that use their
links, and by the classes of their partners, until nothing changes.  Sums of mixed 64-bit numbers stand for multisets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.hlo.devices.groups import Groups
from compare.timeline.arrays import Column, Ints

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The class of every device; classes are numbered in order of their first device."""

    of: Ints
    first: Ints
    """The first device of each class."""

    @property
    def count(self) -> int:
        return int(self.first.size)

    def members(self, index: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.of == index).tolist())


@dataclass(frozen=True, slots=True, eq=False)
class LinkUses:
    """The links that groups use, as columns."""

    group: Ints
    device: Ints
    """Whose link it is."""
    how: Hashes
    """Equal where a link of the same number is used alike."""


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Groups of devices that do something together: (group, device, role) of each member, as columns."""

    alike: Hashes
    """Of each group: equal where they do the same, whoever the devices are."""
    group: Ints
    device: Ints
    role: Ints
    """1 for the target of a pair, else 0."""
    uses: LinkUses

    @classmethod
    def of(cls, groups: Groups, alike: Hashes, uses: LinkUses, *, are_pairs: bool) -> "Relation":
        sizes = np.array([len(group) for group in groups], np.int64)
        group = np.repeat(np.arange(sizes.size), sizes)
        device = np.array([device for members in groups for device in members], np.int64)
        place = np.arange(device.size) - (np.cumsum(sizes) - sizes)[group]
        return cls(alike, group, device, place if are_pairs else np.zeros_like(place), uses)

    def hash_groups(self, color: Ints) -> Hashes:
        """A number for each group; equal where they do the same with devices of the same colours."""
        hashes = mix(color)
        total = self.alike.copy()
        np.add.at(total, self.group, mix(hashes[self.device] + self.role.astype(np.uint64)))
        np.add.at(total, self.uses.group, mix(hashes[self.uses.device] ^ self.uses.how))
        return mix(total)

    def pick_groups(self, hashes: Hashes, classes: Classes) -> dict[int, int]:
        """Hash -> one of the groups with it, of all those that the first device of a class is in."""
        is_first = classes.first[classes.of[self.device]] == self.device
        picked = {int(hashes[group]): group for group in np.unique(self.group[is_first])[::-1].tolist()}
        return dict(reversed(picked.items()))

    def spread(self, color: Ints, total: Hashes, *, salt: int) -> None:
        """Add to each device a number for its groups, and for those on its links."""
        hashes = self.hash_groups(color) + mix(np.array([salt]))
        np.add.at(total, self.device, mix(hashes[self.group] ^ self.role.astype(np.uint64)))
        np.add.at(total, self.uses.device, mix(hashes[self.uses.group] + self.uses.how))


def group_devices(alone: Column, relations: Sequence[Relation]) -> Classes:
    """alone: a number, or a row of numbers, for what each device does alone."""
    color = number_rows(alone)
    while True:
        total = mix(color)
        for index, relation in enumerate(relations):
            relation.spread(color, total, salt=index)
        after = number_rows(total)
        if after.max() == color.max():
            return merge_classes(color)
        color = after


def merge_classes(number: Ints) -> Classes:
    """number: of each device; equal for those of one class."""
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return Classes(rank[inverse.reshape(-1)], first[order])


def number_rows(rows: Column | Hashes) -> Ints:
    """One number for each row; equal rows have equal numbers."""
    if not rows.size:
        return np.zeros(len(rows), np.int64)
    # By their bytes (a zero has one spelling): numpy's rows take fifty times as long for a step's thousands of times.
    whole = np.ascontiguousarray(rows + 0)
    packed = whole.view(f"V{whole[0].nbytes}").reshape(-1)
    return np.asarray(np.unique(packed, return_inverse=True)[1], np.int64).reshape(-1)


def mix(words: Ints | Hashes) -> Hashes:
    """Finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    words = words.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
