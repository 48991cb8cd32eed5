"""Row-major device numbering over named axes, outermost first: coordinates of devices, and groups of devices."""

from collections.abc import Collection, Iterator, Mapping
from itertools import product


def list_coordinates(sizes: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """The coordinates of device 0, 1, …: one on each axis of `sizes`."""
    return product(*(range(size) for size in sizes.values()))


def list_groups(sizes: Mapping[str, int], axes: Collection[str]) -> tuple[tuple[int, ...], ...]:
    """The devices whose coordinates differ along `axes` only, each group in the order of ids."""
    fixed = [number for number, axis in enumerate(sizes) if axis not in axes]
    groups: dict[tuple[int, ...], list[int]] = {}
    for device, coordinates in enumerate(list_coordinates(sizes)):
        groups.setdefault(tuple(coordinates[number] for number in fixed), []).append(device)
    return tuple(map(tuple, groups.values()))
