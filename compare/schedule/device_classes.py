"""Classes of devices that do the same at the same time: each class is modelled once.

Colour refinement: devices differ by the branches they take, by the durations of their collectives, by the links out of
their chips that these use, and by the classes of their partners, until nothing changes.  Classes with identical events
are merged afterwards (`trace_writer.merge_alike`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.schedule.links import SLOTS, Torus
from compare.timeline.arrays import Column, Floats, Ints


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """The cost of one collective on all its devices; each pair of a permute is a group, source first."""

    groups: Groups
    are_pairs: bool
    before_ns: Floats
    """Per group, ns from the last arrival until its links are needed."""
    moving_ns: Floats
    """Per group, ns on its links."""
    uses: tuple[frozenset[int], ...]
    """Per group, the links out of its chips that it occupies meanwhile."""


@dataclass(frozen=True, slots=True)
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


def group_devices(torus: Torus, costs: Sequence[CollectiveCost], branches: Sequence[Ints]) -> Classes:
    """branches: per conditional the branch of every device, devices first; a first dim of 1: the same for all."""
    size = len(torus.places)
    columns = [_ids(taken.reshape(taken.shape[0], -1)) for taken in branches if taken.shape[0] == size]
    columns += [column for cost in costs for column in _durations(cost, size)]
    columns += [_ways(cost, torus) for cost in costs]
    color = _ids(np.stack(columns, axis=1)) if columns else np.zeros(size, np.int64)
    tables = [_table(cost.groups) for cost in costs if not cost.are_pairs]
    tables.append(_table(_chips(torus)))
    pairs = [np.array(cost.groups, np.int64).reshape(-1, 2) for cost in costs if cost.are_pairs]
    while True:
        colors = [color, *(_group_colors(table, color) for table in tables)]
        colors += [column for pair in pairs for column in _partners(pair, color)]
        after = _ids(np.stack(colors, axis=1))
        if after.max() == color.max():
            return _numbered(color)
        color = after


def _numbered(color: Ints) -> Classes:
    _, first, inverse = np.unique(color, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return Classes(rank[inverse.reshape(-1)], first[order])


def _ids(rows: Column) -> Ints:
    """One number per row; equal rows get equal numbers."""
    _, inverse = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(inverse, np.int64).reshape(-1)


def _durations(cost: CollectiveCost, size: int) -> list[Ints]:
    """Per device a number for the times of its group; for a permute as source and as target."""
    positions = [0, 1] if cost.are_pairs else [None]
    columns = []
    for position in positions:
        times = np.full((size, 2), -1.0)
        for group, before, moving in zip(cost.groups, cost.before_ns, cost.moving_ns, strict=True):
            times[list(group) if position is None else group[position]] = before, moving
        columns.append(_ids(times.round(6)))
    return columns


def _ways(cost: CollectiveCost, torus: Torus) -> Ints:
    """Per device a bit mask of the links out of its chip that its groups use."""
    masks = np.zeros(len(torus.places), np.int64)
    for group, uses in zip(cost.groups, cost.uses, strict=True):
        by_chip: dict[int, int] = {}
        for use in uses:
            by_chip[use // SLOTS] = by_chip.get(use // SLOTS, 0) | 1 << use % SLOTS
        masks[list(group)] |= [by_chip.get(chip, 0) for chip in torus.chip[list(group)].tolist()]
    return masks


def _chips(torus: Torus) -> Groups:
    _, inverse = np.unique(torus.chip, return_inverse=True)
    rows: list[list[int]] = [[] for _ in range(int(inverse.max()) + 1)]
    for device, chip in enumerate(inverse.reshape(-1).tolist()):
        rows[chip].append(device)
    return tuple(map(tuple, rows))


def _table(groups: Groups) -> Ints:
    """One row per group, padded with -1."""
    widest = max(map(len, groups), default=0)
    return np.array([[*group, *[-1] * (widest - len(group))] for group in groups], np.int64).reshape(-1, widest)


def _group_colors(table: Ints, color: Ints) -> Ints:
    """Per device a number for the colours of its group."""
    group_ids = np.full(color.size, -1, np.int64)
    if table.size:
        ids = _ids(np.sort(np.where(table < 0, -1, color[table]), axis=1))
        is_member = table >= 0
        group_ids[table[is_member]] = np.broadcast_to(ids[:, None], table.shape)[is_member]
    return group_ids


def _partners(pairs: Ints, color: Ints) -> list[Ints]:
    """Per device the colour of the device it sends to, and of the one it receives from."""
    to, by = np.full(color.size, -1, np.int64), np.full(color.size, -1, np.int64)
    to[pairs[:, 0]], by[pairs[:, 1]] = color[pairs[:, 1]], color[pairs[:, 0]]
    return [to, by]


@dataclass(frozen=True, slots=True)
class ClassCollective:
    """A collective among classes.  Lists of lists are concatenated: `…_starts` says where each begins."""

    before_ns: Floats
    moving_ns: Floats
    members: Ints
    member_starts: Ints
    uses: Ints
    use_starts: Ints
    participants: Ints
    """The classes that are in any group."""
    groups_of: Ints
    """The groups of each participant."""
    groups_of_starts: Ints

    @classmethod
    def of(cls, cost: CollectiveCost, classes: Classes, torus: Torus) -> "ClassCollective":
        by_chip = _first_of_chip(torus)
        containing = _containing(cost.groups, set(classes.first.tolist()))
        groups: dict[tuple[object, ...], int] = {}
        rows: list[tuple[float, float, list[int], list[int]]] = []
        groups_of: list[list[int]] = []
        participants = [
            class_index for class_index, device in enumerate(classes.first.tolist()) if device in containing
        ]
        for class_index in participants:
            mine = []
            for group in containing[int(classes.first[class_index])]:
                members = sorted({int(classes.of[device]) for device in cost.groups[group]})
                ways = {int(classes.of[by_chip[use // SLOTS]]) * SLOTS + use % SLOTS for use in cost.uses[group]}
                before, moving = float(cost.before_ns[group]), float(cost.moving_ns[group])
                key = (before, moving, tuple(members), frozenset(ways))
                if key not in groups:
                    groups[key] = len(rows)
                    # A group without links of its own uses the last link, which is never taken.
                    rows.append((before, moving, members, sorted(ways) or [classes.count * SLOTS]))
                mine.append(groups[key])
            groups_of.append(mine)
        flat_members, member_starts = _flat([row[2] for row in rows])
        uses, use_starts = _flat([row[3] for row in rows])
        flat_groups, groups_of_starts = _flat(groups_of)
        times = np.array([row[:2] for row in rows], np.float64).reshape(-1, 2)
        return cls(
            times[:, 0], times[:, 1], flat_members, member_starts, uses, use_starts,
            np.array(participants, np.int64), flat_groups, groups_of_starts,
        )  # fmt: skip


def _first_of_chip(torus: Torus) -> Mapping[int, int]:
    chips, first = np.unique(torus.chip, return_index=True)
    return dict(zip(chips.tolist(), first.tolist(), strict=True))


def _containing(groups: Groups, devices: set[int]) -> dict[int, list[int]]:
    containing: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        for device in dict.fromkeys(group):
            if device in devices:
                containing.setdefault(device, []).append(index)
    return containing


def _flat(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.cumsum([0, *map(len, lists)])[:-1]
    return np.array([item for row in lists for item in row], np.int64), starts.astype(np.int64)
