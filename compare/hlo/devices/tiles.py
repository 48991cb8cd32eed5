"""Which tile of an array each device holds, by the array's sharding, in both of XLA's spellings.

`{devices=[2,1,4]<=[8] last_tile_dim_replicate}`, `{devices=[1,8]0,1,…}`; `{mesh['a'=2,'b'=4], [{'b'}, {}]}`.
"""

import itertools
import math
import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from compare.hlo.text.errors import MOST_DEVICES, HloError
from meshes.devices.mesh_spec import list_groups

Ids = npt.NDArray[np.int64]
_TILED = re.compile(
    r"\{devices=\[(?P<tiles>[\d,]+)\](?:<=\[(?P<order>[\d,]+)\](?:T\((?P<turn>[\d,]+)\))?|(?P<ids>[\d,]+))"
    r"(?P<last> last_tile_dim_replicate)?\}"
)
_MESH = re.compile(r"\{mesh\[(?P<axes>'[^\]]*)\], \[(?P<dims>[^\]]*)\]\}")
_AXIS = re.compile(r"'([^']+)'=(\d+)")
MOST_DIMS = 32
"""Of an array whose split is spelled."""
_NAMED = re.compile(r"'([^']+)'")


def read_tiles(sharding: str) -> tuple[int, ...] | None:
    """Per device the number of its tile; `None` for a whole array, and for a spelling that is not known here."""
    if match := _TILED.fullmatch(sharding):
        return _tiled(match)
    if (match := _MESH.fullmatch(sharding)) and ":" not in match["dims"] and "?" not in match["dims"]:
        sizes = {name: int(size) for name, size in _AXIS.findall(match["axes"])}
        used = _NAMED.findall(match["dims"])
        if not 0 < math.prod(sizes.values()) <= MOST_DEVICES or not set(used) <= set(sizes):
            raise HloError(f"the sharding {sharding[:80]!r} names an axis that its mesh has not")
        groups = list_groups(sizes, tuple(name for name in sizes if name not in used))
        return _by_device(
            {device: tile for tile, group in enumerate(groups) for device in group}, count=math.prod(sizes.values())
        )
    return None


def spell_split(sharding: str, *, axes: Mapping[str, int]) -> str:
    """`[data, -, x·y]`: the axes that each dim is split over; the sharding as it stands where no axes make it.

    axes: the mesh's, outermost first.
    """
    split = list_axes(sharding, axes=axes)
    return sharding if split is None else f"[{', '.join('·'.join(names) or '-' for names in split)}]"


def list_axes(sharding: str, *, axes: Mapping[str, int]) -> tuple[tuple[str, ...], ...] | None:
    """For each dim of a sharding by tiles the axes that split it, major first; `None` where no whole axes make it.

    axes: the mesh's, outermost first, devices row-major.
    """
    match = _TILED.fullmatch(sharding)
    sizes = _ints(match["tiles"])[: -1 if match["last"] else None] if match else ()
    tiles = read_tiles(sharding) if match else None
    if tiles is None or len(sizes) > MOST_DIMS or len(tiles) != math.prod(axes.values()):
        return None
    places = np.arange(len(tiles)).reshape(*axes.values())
    at = dict(zip(axes, np.unravel_index(places.ravel(), places.shape), strict=True))
    split: list[tuple[str, ...]] = []
    for index, size in zip(np.unravel_index(tiles, sizes), sizes, strict=True):
        names = _axes_of(index, size, at, axes)
        if names is None:
            return None
        split.append(names)
    return tuple(split)


def _axes_of(index: Ids, size: int, at: Mapping[str, Ids], axes: Mapping[str, int]) -> tuple[str, ...] | None:
    """The fewest axes, major first, that number the parts of a dim as `index` does."""
    if size == 1:
        return ()
    for count in range(1, len(axes) + 1):
        for order in itertools.permutations(axes, count):
            if math.prod(axes[axis] for axis in order) == size:
                number = np.ravel_multi_index([at[axis] for axis in order], [axes[axis] for axis in order])
                if np.array_equal(number, index):
                    return order
    return None


def _tiled(match: re.Match[str]) -> tuple[int, ...]:
    tiles = _ints(match["tiles"])
    order = _ints(match["order"]) if match["order"] else ()
    count = math.prod(tiles)
    if not 0 < count <= MOST_DEVICES or math.prod(order) > MOST_DEVICES:
        raise HloError(f"the sharding {match[0][:80]!r} has an implausible device count")
    try:
        devices = np.array(_ints(match["ids"])) if match["ids"] else np.arange(math.prod(order)).reshape(order)
        devices = devices.transpose(_ints(match["turn"])) if match["turn"] else devices
        held = devices.reshape(-1, tiles[-1] if match["last"] else 1)
        if held.size != count:
            raise ValueError
    except ValueError:
        raise HloError(f"the sharding {match[0][:80]!r} has sizes whose product is not the number of ids") from None
    return _by_device({int(device): tile for tile, row in enumerate(held) for device in row}, count=count)


def _by_device(tiles: Mapping[int, int], *, count: int) -> tuple[int, ...]:
    if sorted(tiles) != list(range(count)):
        raise HloError("a sharding does not name each device once")
    return tuple(tiles[device] for device in range(len(tiles)))


def is_split_over(tiles: tuple[int, ...] | None, axis: str, *, axes: Mapping[str, int]) -> bool:
    """Whether each member of an axis holds a tile of its own.  axes: the mesh's, outermost first."""
    if tiles is None or len(tiles) != math.prod(axes.values()) or axes.get(axis, 1) < 2:
        return False
    return all(len({tiles[device] for device in group}) == len(group) for group in list_groups(axes, (axis,)))


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(number[:9]) for number in text.split(",") if number)
