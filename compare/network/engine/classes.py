"""Groups of ranks as groups of classes: which classes are in them, and how much they put on the links of a class."""

from dataclasses import dataclass

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.network.engine.footprint import Footprint, Uses
from compare.schedule.device_classes import Classes, Hashes, LinkUses, Relation, mix, number_rows


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


def relate_ranks(traffic: Traffic, slots: int) -> Relation:
    """What tells ranks apart.  slots: links that a rank has."""
    alike = np.zeros(len(traffic.groups), np.uint64)
    parts = []
    for index, footprint in enumerate(traffic.footprints):
        alike[footprint.groups] = np.uint64(index + 1)
        for place, part in enumerate(footprint.passes):
            for step in part.steps:
                rows = np.concatenate([step.hops, step.load], axis=1)
                alike[footprint.groups] = mix(alike[footprint.groups] + number_rows(rows.round(9)).astype(np.uint64))
            uses = part.uses
            how = mix(uses.load.round(9).view(np.uint64)) + mix(uses.link % slots * 64 + place)
            parts.append((footprint.groups[uses.group], uses.link // slots, how))
    group, device, how = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Relation.of(traffic.groups, alike, LinkUses(group, device, how), are_pairs=traffic.are_pairs)


def list_class_groups(traffic: Traffic, relation: Relation, classes: Classes, slots: int) -> tuple[ClassGroup, ...]:
    """Those of the first rank of each class."""
    place_of = {
        group: (index, place)
        for index, footprint in enumerate(traffic.footprints)
        for place, group in enumerate(footprint.groups.tolist())
    }
    hashes = relation.hash_groups(classes.of)
    links = [
        [_list_links(part.uses, footprint, hashes, classes, slots) for part in footprint.passes]
        for footprint in traffic.footprints
    ]
    rows = []
    for word, group in relation.pick_groups(hashes, classes).items():
        index, place = place_of[group]
        roles = enumerate(traffic.groups[group]) if traffic.are_pairs else ((0, rank) for rank in traffic.groups[group])
        members = tuple(dict.fromkeys((int(classes.of[rank]), role) for role, rank in roles))
        rows.append(ClassGroup(index, place, group, members, tuple(part.get(word, ()) for part in links[index])))
    return tuple(rows)


def _list_links(
    uses: Uses, footprint: Footprint, hashes: Hashes, classes: Classes, slots: int
) -> dict[int, tuple[tuple[int, float], ...]]:
    """By hash of a group, the links of first ranks that it and those like it use."""
    rank = uses.link // slots
    kept = classes.first[classes.of[rank]] == rank
    words = hashes[footprint.groups[uses.group[kept]]]
    link = classes.of[rank[kept]] * slots + uses.link[kept] % slots
    loads: dict[int, dict[int, float]] = {}
    for word, number, load in zip(words.tolist(), link.tolist(), uses.load[kept].tolist(), strict=True):
        of_group = loads.setdefault(word, {})
        of_group[number] = of_group.get(number, 0.0) + load
    return {word: tuple(of_group.items()) for word, of_group in loads.items()}
