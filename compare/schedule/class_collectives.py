"""A collective's cost on its devices, and the same among classes of devices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.schedule.device_classes import Classes, Hashes, LinkUses, Relation, mix, number_rows
from compare.schedule.links import SLOTS, Torus
from compare.timeline.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
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


def relate_devices(cost: CollectiveCost, torus: Torus) -> Relation:
    """What tells devices apart: the times of their groups, and the links out of their chips that groups use."""
    alike = number_rows(np.stack([cost.before_ns, cost.moving_ns], axis=1).round(6)).astype(np.uint64)
    chips = _list_chips(torus)
    uses = [
        (group, device, use % SLOTS)
        for group, links in enumerate(cost.uses)
        for use in links
        for device in chips[use // SLOTS]
    ]
    group, device, slot = np.array(uses, np.int64).reshape(-1, 3).T
    return Relation.of(cost.groups, alike, LinkUses(group, device, mix(slot)), are_pairs=cost.are_pairs)


def relate_chips(torus: Torus) -> Relation:
    """The devices of a chip share its links."""
    groups = tuple(map(tuple, _list_chips(torus).values()))
    none, nothing = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    alike: Hashes = np.zeros(len(groups), np.uint64)
    return Relation.of(groups, alike, LinkUses(none, none, nothing), are_pairs=False)


def _list_chips(torus: Torus) -> dict[int, list[int]]:
    """Chip -> its devices."""
    chips: dict[int, list[int]] = {}
    for device, chip in enumerate(torus.chip.tolist()):
        chips.setdefault(chip, []).append(device)
    return chips


@dataclass(frozen=True, slots=True, eq=False)
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
    def of(cls, cost: CollectiveCost, relation: Relation, classes: Classes, torus: Torus) -> "ClassCollective":
        class_of_chip = {chip: int(classes.of[devices[0]]) for chip, devices in _list_chips(torus).items()}
        picked = list(relation.pick_groups(relation.hash_groups(classes.of), classes).values())
        members = [np.unique(classes.of[list(cost.groups[group])]).tolist() for group in picked]
        # A group without links of its own uses the last link, which is never taken.
        ways = [
            sorted({class_of_chip[use // SLOTS] * SLOTS + use % SLOTS for use in cost.uses[group]})
            or [classes.count * SLOTS]
            for group in picked
        ]
        groups_of: dict[int, list[int]] = {}
        for row, mine in enumerate(members):
            for index in mine:
                groups_of.setdefault(index, []).append(row)
        participants = sorted(groups_of)
        return cls(
            cost.before_ns[picked],
            cost.moving_ns[picked],
            *_flat(members),
            *_flat(ways),
            np.array(participants, np.int64),
            *_flat([groups_of[index] for index in participants]),
        )


def _flat(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.cumsum([0, *map(len, lists)])[:-1]
    return np.array([item for row in lists for item in row], np.int64), starts.astype(np.int64)
