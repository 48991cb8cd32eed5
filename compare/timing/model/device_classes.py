"""Classes of devices that do the same at the same time: each is modelled once.

Two devices are told apart by the branches they take, by how long their collectives take, by the ways out of their chips
that these use, and by whom they meet; those who meet devices that are told apart are told apart too, until nothing
changes.  Of those to whom in the end the very same happened one is shown (`record.merged`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.timing.arrays import Column, Floats, Ints
from compare.timing.model.links import SLOTS, Torus


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """One collective on all its devices; of a permute each pair is a group, source first."""

    groups: Groups
    are_pairs: bool
    before_ns: Floats
    """Of each group, from the last arrival until its links are needed."""
    moving_ns: Floats
    """Of each group, on its links."""
    uses: tuple[frozenset[int], ...]
    """Of each group, the ways out of its chips that nothing else may use meanwhile."""


@dataclass(frozen=True, slots=True)
class Classes:
    """Every device's class; classes are numbered by their first device."""

    of: Ints
    first: Ints
    """The first device of each."""

    @property
    def number(self) -> int:
        return int(self.first.size)

    def members(self, number: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.of == number).tolist())


def group_devices(torus: Torus, meetings: Sequence[CollectiveCost], branches: Sequence[Ints]) -> Classes:
    """branches: of each conditional what every device takes, devices first; a first dim of 1 tells none apart."""
    size = len(torus.places)
    columns = [_ids(taken.reshape(taken.shape[0], -1)) for taken in branches if taken.shape[0] == size]
    columns += [column for meeting in meetings for column in _durations(meeting, size)]
    columns += [_ways(meeting, torus) for meeting in meetings]
    color = _ids(np.stack(columns, axis=1)) if columns else np.zeros(size, np.int64)
    tables = [_table(meeting.groups) for meeting in meetings if not meeting.are_pairs]
    tables.append(_table(_chips(torus)))
    pairs = [np.array(meeting.groups, np.int64).reshape(-1, 2) for meeting in meetings if meeting.are_pairs]
    while True:
        found = [color, *(_met(table, color) for table in tables)]
        found += [column for pair in pairs for column in _partners(pair, color)]
        after = _ids(np.stack(found, axis=1))
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
    """Numbers for equal rows."""
    _, inverse = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(inverse, np.int64).reshape(-1)


def _durations(meeting: CollectiveCost, size: int) -> list[Ints]:
    """Of each device the times of its group; of a permute as source and as target."""
    places = [0, 1] if meeting.are_pairs else [None]
    found = []
    for place in places:
        times = np.full((size, 2), -1.0)
        for group, before, moving in zip(meeting.groups, meeting.before_ns, meeting.moving_ns, strict=True):
            times[list(group) if place is None else group[place]] = before, moving
        found.append(_ids(times.round(6)))
    return found


def _ways(meeting: CollectiveCost, torus: Torus) -> Ints:
    """Of each device the ways out of its chip that its groups use: who needs others may find them taken."""
    masks = np.zeros(len(torus.places), np.int64)
    for group, uses in zip(meeting.groups, meeting.uses, strict=True):
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
    """One row for each group, filled up with -1."""
    widest = max(map(len, groups), default=0)
    return np.array([[*group, *[-1] * (widest - len(group))] for group in groups], np.int64).reshape(-1, widest)


def _met(table: Ints, color: Ints) -> Ints:
    """Of each device the colours of its group."""
    found = np.full(color.size, -1, np.int64)
    if table.size:
        ids = _ids(np.sort(np.where(table < 0, -1, color[table]), axis=1))
        there = table >= 0
        found[table[there]] = np.broadcast_to(ids[:, None], table.shape)[there]
    return found


def _partners(pairs: Ints, color: Ints) -> list[Ints]:
    """Of each device the colour of whom it sends to, and of whom it hears."""
    to, by = np.full(color.size, -1, np.int64), np.full(color.size, -1, np.int64)
    to[pairs[:, 0]], by[pairs[:, 1]] = color[pairs[:, 1]], color[pairs[:, 0]]
    return [to, by]


@dataclass(frozen=True, slots=True)
class ClassCollective:
    """A meeting of classes.  Lists of lists lie end to end: `starts` says where each begins."""

    before_ns: Floats
    moving_ns: Floats
    members: Ints
    member_starts: Ints
    uses: Ints
    use_starts: Ints
    takes_part: Ints
    """The classes that are in any group."""
    theirs: Ints
    """The groups of each of those."""
    their_starts: Ints

    @classmethod
    def of(cls, meeting: CollectiveCost, classes: Classes, torus: Torus) -> "ClassCollective":
        by_chip = _first_of_chip(torus)
        containing = _containing(meeting.groups, set(classes.first.tolist()))
        groups: dict[tuple[object, ...], int] = {}
        rows: list[tuple[float, float, list[int], list[int]]] = []
        theirs: list[list[int]] = []
        takes_part = [number for number, device in enumerate(classes.first.tolist()) if device in containing]
        for number in takes_part:
            mine = []
            for at in containing[int(classes.first[number])]:
                members = sorted({int(classes.of[device]) for device in meeting.groups[at]})
                ways = {int(classes.of[by_chip[use // SLOTS]]) * SLOTS + use % SLOTS for use in meeting.uses[at]}
                before, moving = float(meeting.before_ns[at]), float(meeting.moving_ns[at])
                key = (before, moving, tuple(members), frozenset(ways))
                if key not in groups:
                    groups[key] = len(rows)
                    # A group without links of its own waits for a way that is never taken: the last.
                    rows.append((before, moving, members, sorted(ways) or [classes.number * SLOTS]))
                mine.append(groups[key])
            theirs.append(mine)
        everybody, member_starts = _flat([row[2] for row in rows])
        uses, use_starts = _flat([row[3] for row in rows])
        flat, their_starts = _flat(theirs)
        times = np.array([row[:2] for row in rows], np.float64).reshape(-1, 2)
        whole = np.array(takes_part, np.int64)
        return cls(times[:, 0], times[:, 1], everybody, member_starts, uses, use_starts, whole, flat, their_starts)


def _first_of_chip(torus: Torus) -> Mapping[int, int]:
    chips, first = np.unique(torus.chip, return_index=True)
    return dict(zip(chips.tolist(), first.tolist(), strict=True))


def _containing(groups: Groups, devices: set[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for at, group in enumerate(groups):
        for device in dict.fromkeys(group):
            if device in devices:
                found.setdefault(device, []).append(at)
    return found


def _flat(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.cumsum([0, *map(len, lists)])[:-1]
    return np.array([one for row in lists for one in row], np.int64), starts.astype(np.int64)
