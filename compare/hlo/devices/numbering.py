"""A collective's groups as device ids, by XLA's rules for replicas and partitions."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from compare.hlo.devices.groups import Groups, read_groups, read_pairs
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction

PARTITIONS_ONLY = {"all-to-all", "ragged-all-to-all", "collective-permute", "collective-broadcast"}
"""Kinds whose ids are partitions if they have a channel; others then need `use_global_device_ids`."""

SLICE_UNIT = 100_000
"""Offset between the device ids of successive slices; those of the first start at it."""


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
    if text.startswith("mesh") and "device_ids" in item.attributes and "device_ids" not in text:
        text = f"{text}, device_ids={item.attributes['device_ids']}"
    try:
        return read_pairs(text) if key == "source_target_pairs" else read_groups(text)
    except HloError as error:
        raise item.error(str(error)) from None


def _mode(item: Instruction, kind: str) -> str:
    """What the ids in the groups count, as XLA's `GetCollectiveOpGroupMode`."""
    channel = item.attributes.get("channel_id")
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
