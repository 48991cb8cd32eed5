"""Device groups: all of XLA's spellings, resolved to explicit lists of ids, and by XLA's rules to ids of devices.

`{{0,1},{2,3}}`; `[2,4]<=[8]`; `[4,2]<=[2,2,2]T(2,1,0)`; `mesh['a'=2,'b'=4] {'b'}`, also with
`, device_ids=([2,4]T(1,0))` before the braces and with sub-axes, `{'a':(2)2}`.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compare.hlo.text.errors import MOST_DEVICES, HloError
from compare.hlo.text.instruction import Instruction

Groups = tuple[tuple[int, ...], ...]

PARTITIONS_ONLY = {"all-to-all", "ragged-all-to-all", "collective-permute", "collective-broadcast"}
"""Kinds whose ids are partitions if they have a channel; others then need `use_global_device_ids`."""

# `_xla_megascale_target={{100000->200000},{200000->100000},{100002->200002},…}`: device 0 of the first slice to device
# 0 of the second, and back.
SLICE_UNIT = 100_000
"""Offset between the device ids of successive slices; those of the first start at it."""

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


@dataclass(frozen=True)
class DeviceNumbering:
    """The devices that one module runs on: id = replica times partitions + partition."""

    replicas: int
    partitions: int
    slices: int = 1
    ids: tuple[int, ...] = ()
    """Of several slices: the runtime's id of each device of the mesh, `SLICE_UNIT` · (slice + 1) + its number there.

    None: the slices follow each other, and the devices of each are in the order of their numbers.
    """

    is_counted: bool = True
    """Whether the text gives replicas and partitions; without them its ids are devices."""

    def __post_init__(self) -> None:
        if not self.ids:
            return
        sizes = Counter(device_id // SLICE_UNIT for device_id in self.ids)
        is_complete = len(set(self.ids)) == self.num_devices == len(self.ids)
        if not is_complete or sizes != dict.fromkeys(range(1, self.slices + 1), self.in_slice):
            raise HloError(
                f"the ids of {len(self.ids)} devices were told, in {len(sizes)} slices; the program is for "
                f"{self.slices} slices of {self.in_slice}"
            )

    @property
    def in_slice(self) -> int:
        return self.replicas * self.partitions

    @property
    def num_devices(self) -> int:
        return self.slices * self.in_slice

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Per device of the mesh, in mesh order: (slice, logical device id in that slice's program)."""
        counts = [0] * self.slices
        pairs = []
        for at in self._slice_of:
            pairs.append((at, counts[at]))
            counts[at] += 1
        return tuple(pairs)

    @property
    def _slice_of(self) -> tuple[int, ...]:
        if self.ids:
            return tuple(device_id // SLICE_UNIT - 1 for device_id in self.ids)
        return tuple(device // self.in_slice for device in range(self.num_devices))

    @cached_property
    def _at(self) -> dict[tuple[int, int], int]:
        return {place: device for device, place in enumerate(self.places)}

    @cached_property
    def _of_number(self) -> dict[tuple[int, int], int]:
        """(slice, number in the slice) -> device: how megascale targets name devices."""
        if not self.ids:
            return self._at
        return {
            (device_id // SLICE_UNIT - 1, device_id % SLICE_UNIT): device for device, device_id in enumerate(self.ids)
        }

    def device_in_slice(self, at: int, number: int) -> int | None:
        """The device of the mesh that is device `number` of slice `at`; None without one."""
        return self._of_number.get((at, number))

    def repeat_in_slices(self, groups: Groups) -> Groups:
        """Groups of one slice's program, repeated in every slice."""
        if self.slices == 1:
            return groups
        return tuple(tuple(self._at[at, place] for place in group) for at in range(self.slices) for group in groups)


def groups_of(item: Instruction, kind: str, program: DeviceNumbering) -> Groups:
    """The groups of a collective, of a permute its pairs, as ids of devices of one slice."""
    if kind == "collective-permute":
        rows = ids_in(item, "source_target_pairs")
        return spread_ids(rows, item, kind, program)
    rows = ids_in(item, "replica_groups") if "replica_groups" in item.attributes else ()
    if rows:
        return spread_ids(rows, item, kind, program)
    if program.replicas == 1 and program.is_counted and _mode(item, kind) == "replicas":
        return tuple((device,) for device in range(program.in_slice))  # of one replica each partition is alone
    if program.replicas == 1 or program.partitions == 1:
        return (tuple(range(program.in_slice)),)
    ids = program.partitions if _mode(item, kind) == "partitions" else program.replicas
    return spread_ids((tuple(range(ids)),), item, kind, program)


def largest_id(item: Instruction) -> int:
    """The largest id that its groups or pairs name; 0 where it has none."""
    keys = [key for key in ("replica_groups", "source_target_pairs") if key in item.attributes]
    return max((device for key in keys for row in ids_in(item, key) for device in row), default=0)


def ids_in(item: Instruction, key: str) -> Groups:
    """The ids in `replica_groups` or `source_target_pairs`, as written."""
    text = item.attribute(key)
    # A mesh in another order than its ids goes on behind a comma, so that it reads as an attribute of its own:
    #   replica_groups=mesh['axis_0'=4,'axis_1'=1,'axis_2'=2], device_ids=([2,4]T(1,0)) {'axis_0'}
    if text.startswith("mesh") and "device_ids" in item.attributes and "device_ids" not in text:
        text = f"{text}, device_ids={item.attributes['device_ids']}"
    try:
        return read_pairs(text) if key == "source_target_pairs" else read_groups(text)
    except HloError as error:
        raise item.error(str(error)) from None


def _mode(item: Instruction, kind: str) -> str:
    """What the ids in the groups count, as XLA's `GetCollectiveOpGroupMode`."""
    channel = item.attributes.get("channel_id")
    # PyTorch/XLA writes `xm.all_gather` without a channel, so that its ids are replicas of a program that has one:
    #   all-gather(%p0.1), replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0}
    if channel is None or (channel == "0" and item.opcode == "send"):
        return "replicas"
    if item.attributes.get("use_global_device_ids") == "true":
        return "devices"
    return "partitions" if kind in PARTITIONS_ONLY else "replicas of all partitions"


def spread_ids(rows: Groups, item: Instruction, kind: str, program: DeviceNumbering) -> Groups:
    """Turn ids of replicas or partitions into ids of devices; of a text without counts they are devices.

    XLA's verifier takes one replica for a count that is not set, and compiles ids beyond it; its runtime refuses them.
    """
    mode, replicas, partitions = _mode(item, kind), program.replicas, program.partitions
    largest = max((device for row in rows for device in row), default=0)
    word = "pairs" if kind == "collective-permute" else "groups"
    if sum(map(len, rows)) > program.in_slice and kind != "collective-permute":
        raise item.error(f"its groups name device {largest}, and the program has {program.in_slice} devices")
    if mode == "devices" or (largest >= replicas and not program.is_counted):
        groups = rows
    elif largest >= (partitions if mode == "partitions" else replicas):
        counts = f"{_count(replicas, 'replica')} of {_count(partitions, 'partition')}"
        raise item.error(
            f"its {word} name {mode.split()[0][:-1]} {largest}, and the program has {counts}; {_other_ids(item, kind)}"
        )
    elif mode == "replicas":
        groups = tuple(
            tuple(replica * partitions + part for replica in row) for row in rows for part in range(partitions)
        )
    elif mode == "partitions":
        groups = tuple(
            tuple(replica * partitions + part for part in row) for replica in range(replicas) for row in rows
        )
    else:
        groups = tuple(
            tuple(replica * partitions + part for replica in row for part in range(partitions)) for row in rows
        )
    if largest >= program.in_slice:
        raise item.error(f"its {word} name device {largest}, and the program has {program.in_slice} devices")
    return groups


def _other_ids(item: Instruction, kind: str) -> str:
    """What a collective has whose ids count something else."""
    if kind not in PARTITIONS_ONLY:
        return "groups of devices have channel_id and use_global_device_ids=true"
    return f"ids of {'replicas have no' if _mode(item, kind) == 'partitions' else 'partitions have a'} channel_id"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
