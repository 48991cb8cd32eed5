"""Groups over several slices, cut at their borders: what the steps of one collective between slices run over."""

from collections.abc import Iterable, Sequence

from compare.hlo.devices.axes import Mesh
from compare.hlo.devices.groups import Groups

Cut = frozenset[frozenset[int]]


def cuts(mesh: Mesh, slice_of: Sequence[int]) -> dict[Cut, str]:
    """Groups by what they are a part of: the smallest set of axes (comma-joined) whose groups were cut so.

    A group over several slices talks in steps: the devices of each slice among themselves, and those of the same place
    in each slice with each other.  Parts that are the groups of some axes themselves are left out.
    """
    found: dict[Cut, str] = {}
    for whole, axes in mesh.by_groups.items():
        for part in _parts(whole, slice_of):
            if part not in mesh.by_groups:
                found.setdefault(part, ",".join(axes))
    return found


def part_of(groups: Groups, known: dict[Cut, str]) -> str:
    """The axes that these groups are a part of, or nothing."""
    return known.get(frozenset(map(frozenset, groups)), "")


def _parts(whole: Iterable[frozenset[int]], slice_of: Sequence[int]) -> tuple[Cut, Cut]:
    """The part within slices, and the part between them."""
    within: set[frozenset[int]] = set()
    between: set[frozenset[int]] = set()
    for group in whole:
        by_slice: dict[int, list[int]] = {}
        for device in sorted(group):
            by_slice.setdefault(slice_of[device], []).append(device)
        within.update(map(frozenset, by_slice.values()))
        between.update(map(frozenset, zip(*by_slice.values(), strict=False)))
    return frozenset(within), frozenset(between)
