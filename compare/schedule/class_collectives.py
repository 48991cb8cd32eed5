"""A collective's cost on its devices, and the same among classes of devices."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.schedule.device_classes import Classes, Hashes, LinkUses, Relation, mix, number_rows
from compare.schedule.links import SLOTS, Torus
from compare.timeline.arrays import Floats


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


@dataclass(frozen=True, slots=True)
class AlikeGroups:
    """Groups of a collective that do the same at the same time."""

    members: tuple[int, ...]
    """Classes, in order."""
    before_ns: float
    moving_ns: float
    links: frozenset[int]
    """class x `SLOTS` + link"""


@dataclass(frozen=True, slots=True, eq=False)
class ClassCollective:
    """A collective among classes."""

    groups: tuple[AlikeGroups, ...]
    groups_of: Mapping[int, tuple[int, ...]]
    """Of each class that is in any, the indices of its groups."""

    @classmethod
    def of(cls, cost: CollectiveCost, relation: Relation, classes: Classes, torus: Torus) -> "ClassCollective":
        class_of_chip = {chip: int(classes.of[devices[0]]) for chip, devices in _list_chips(torus).items()}
        groups = tuple(
            AlikeGroups(
                tuple(np.unique(classes.of[list(cost.groups[group])]).tolist()),
                float(cost.before_ns[group]),
                float(cost.moving_ns[group]),
                frozenset(class_of_chip[use // SLOTS] * SLOTS + use % SLOTS for use in cost.uses[group]),
            )
            for group in relation.pick_groups(relation.hash_groups(classes.of), classes).values()
        )
        groups_of: dict[int, tuple[int, ...]] = {}
        for place, group in enumerate(groups):
            for index in group.members:
                groups_of[index] = (*groups_of.get(index, ()), place)
        return cls(groups, groups_of)
