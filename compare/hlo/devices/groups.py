"""Device groups: all of XLA's spellings, resolved to explicit lists of ids.

`{{0,1},{2,3}}`; `[2,4]<=[8]`; `[4,2]<=[2,2,2]T(2,1,0)`; `mesh['a'=2,'b'=4] {'b'}`, also with
`, device_ids=([2,4]T(1,0))` before the braces and with sub-axes, `{'a':(2)2}`.
"""

import math
import re
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compare.hlo.text.errors import MOST_DEVICES, HloError

Groups = tuple[tuple[int, ...], ...]

_LISTS = re.compile(r"\{(?:\{[\d\s,]*\}[\s,]*)*\}")
_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\](?:\s*,\s*device_ids=\(([^)]*+\)?[^)]*+)\))?\s*\{(.*)\}")
_AXIS = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\"|([\w.\-]+))\s*=\s*(\d+)\s*")
_REF = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\"|([\w.\-]+))\s*(?::\((\d+)\)(\d+))?\s*")
_TRANSPOSED = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")
_PAIR = re.compile(r"\{\s*(\d+)\s*,\s*(\d+)\s*\}")


@lru_cache(maxsize=1024)
def read_groups(text: str) -> Groups:
    """Read any spelling of device groups; `{}` is the empty tuple, which means all devices."""
    try:
        return _read(text.strip())
    except HloError:
        raise
    except ValueError:  # numbers too long for Python, and dims that numpy cannot lay out
        raise HloError(f"device groups {text[:80]!r} have sizes whose product is not the number of ids") from None


def _read(text: str) -> Groups:
    if _LISTS.fullmatch(text):
        rows = [_ints(row) for row in re.findall(r"\{([\d\s,]*)\}", text[1:-1])]
        return _checked(tuple(row for row in rows if row), text)
    if match := _IOTA.fullmatch(text):
        shape, order, turn = _ints(match[1]), _ints(match[2]), match[3]
        if math.prod(shape) != math.prod(order) or len(shape) != 2:
            raise HloError(f"device groups {text!r} have sizes whose product is not the number of ids")
        _check_num_devices(order, text)
        return _checked(_rows(_iota(order, turn, text).reshape(shape)), text)
    if match := _MESH.fullmatch(text):
        return _checked(_mesh(match, text), text)
    raise HloError(f"unknown spelling of device groups: {text!r}")


@lru_cache(maxsize=1024)
def read_pairs(text: str) -> Groups:
    """Read a permute's `{{source,target},…}`."""
    pairs = tuple(_ints(",".join(pair)) for pair in _PAIR.findall(text))
    if text.strip() != "{}" and not re.fullmatch(r"\{(?:\{\s*\d+\s*,\s*\d+\s*\}[\s,]*+)++\}", text.strip()):
        raise HloError(f"unknown spelling of source-target pairs: {text!r}")
    return pairs


def _check_num_devices(sizes: tuple[int, ...], text: str) -> None:
    if not 0 < math.prod(sizes) <= MOST_DEVICES:
        raise HloError(f"device groups {text!r} have an implausible device count")


def _checked(rows: Groups, text: str) -> Groups:
    ids = [device for row in rows for device in row]
    if len(ids) != len(set(ids)):
        raise HloError(f"a device stands in two groups: {text!r}")
    return rows


def _ints(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(","))) if text.strip() else ()
    except ValueError:
        raise HloError(f"cannot read {text[:80]!r} as numbers of devices") from None


def _rows(array: NDArray[np.int64]) -> Groups:
    return tuple(tuple(row) for row in array.tolist())


def _iota(order: tuple[int, ...], turn: str | None, text: str) -> NDArray[np.int64]:
    """0, 1, … laid out as `order`, its dims then transposed."""
    devices = np.arange(math.prod(order)).reshape(order)
    if turn is None:
        return devices
    if sorted(_ints(turn)) != list(range(len(order))):
        raise HloError(f"the transpose of device groups {text!r} does not name each dim once")
    return devices.transpose(_ints(turn))


def _mesh(match: re.Match[str], text: str) -> Groups:
    """Groups along axes of a mesh that XLA names itself; a sub-axis `(p)s` is s of the axis, after p parts of it."""
    axes = [_AXIS.fullmatch(part) for part in match[1].split(",")]
    refs = [_REF.fullmatch(part) for part in match[3].split(",") if part.strip()]
    if not all(axes) or not all(refs):
        raise HloError(f"unknown spelling of device groups: {text!r}")
    sizes = {axis[1] or axis[2] or axis[3]: int(axis[4]) for axis in axes if axis}
    _check_num_devices(tuple(sizes.values()), text)
    devices = _mesh_devices(match[2], tuple(sizes.values()), text)
    cuts: dict[str, set[int]] = {name: {1, size} for name, size in sizes.items()}
    wanted: list[tuple[str, int, int]] = []
    for ref in refs:
        assert ref is not None
        name = ref[1] or ref[2] or ref[3]
        if name not in sizes:
            raise HloError(f"device groups {text!r} name an axis that their mesh has not: {name!r}")
        before, size = (int(ref[4]), int(ref[5])) if ref[4] else (1, sizes[name])
        cuts[name] |= {before, before * size}
        if before < 1 or size < 1 or before * size > sizes[name]:
            raise HloError(f"device groups {text!r} name a part of {name!r} that it has not")
        wanted.append((name, before, before * size))
    return _along(devices, cuts, wanted, text)


def _along(
    devices: NDArray[np.int64], cuts: dict[str, set[int]], wanted: list[tuple[str, int, int]], text: str
) -> Groups:
    """Cut every axis at its sub-axes, then move the wanted pieces last."""
    pieces: list[tuple[str, int]] = []
    shape: list[int] = []
    for name, marks in cuts.items():
        ordered = sorted(marks)
        for low, high in pairwise(ordered):
            if high % low:
                raise HloError(f"the sub-axes of device groups {text!r} do not divide their axis")
            pieces.append((name, low))
            shape.append(high // low)
    last = [
        at
        for name, low, high in wanted
        for at, piece in enumerate(pieces)
        if piece[0] == name and low <= piece[1] < high
    ]
    first = [at for at in range(len(pieces)) if at not in last]
    if len(set(last)) != len(last):
        raise HloError(f"device groups {text!r} name an axis twice")
    transposed = devices.reshape(shape).transpose(first + last)
    return _rows(transposed.reshape(math.prod(shape[at] for at in first), -1))


def _mesh_devices(ids: str | None, sizes: tuple[int, ...], text: str) -> NDArray[np.int64]:
    """The ids of a mesh, in its order: plain, transposed (`[2,4]T(1,0)`), or a list."""
    if ids is None:
        return np.arange(math.prod(sizes))
    if transposed := _TRANSPOSED.fullmatch(ids.strip()):
        _check_num_devices(_ints(transposed[1]), text)
        devices = _iota(_ints(transposed[1]), transposed[2], text).reshape(-1)
    elif re.fullmatch(r"[\d\s,]+", ids):
        devices = np.array(_ints(ids))
    else:
        raise HloError(f"unknown spelling of device groups: {text!r}")
    if devices.size != math.prod(sizes):
        raise HloError(f"device groups {text!r} have sizes whose product is not the number of ids")
    return devices
