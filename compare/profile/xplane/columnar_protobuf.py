"""Read many small protobuf messages at once, as columns, without a Python object per message.

A profile holds millions of events of three or four numbers each.  Protobuf gives their bounds; the fields inside are
read here, the next field of every message in one vectorized step (protobuf.dev/programming-guides/encoding).
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from compare.timeline.arrays import Ints, Mask
from compare.timeline.errors import TimingError

Bits = NDArray[np.uint64]

MOST_FIELDS = 1 << 12
"""Most fields of one message: an event has a few dozen."""
PADDING = bytes(16)
"""Allows reading ten bytes at any offset of a message."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MORE, _LOW = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_SQUEEZES = (
    (np.uint64(0x007F007F007F007F), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(4)),
)
"""Merge groups of 7 bits into groups of 14, 28, 56: (mask that stays, right shift of the neighbours)."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Start and end of each message in one buffer."""

    data: NDArray[np.uint8]
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Self:
        ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        data = np.frombuffer(b"".join((*parts, PADDING)), np.uint8)
        return cls(data, np.concatenate((np.zeros(1, np.int64), ends))[:-1], ends)

    def __len__(self) -> int:
        return self.starts.size

    def only(self, kept: Mask) -> "Messages":
        return Messages(self.data, self.starts[kept], self.ends[kept])


@dataclass(frozen=True, slots=True)
class Fields:
    """One field of each of several messages."""

    owner: Ints
    """Index of the message."""
    number: Ints
    value: Bits
    """An int, or the bits of a double; for bytes their length."""
    offset: Ints
    """Offset of the value in the buffer."""

    def only(self, kept: Mask) -> "Fields":
        return Fields(self.owner[kept], self.number[kept], self.value[kept], self.offset[kept])


def fields(messages: Messages) -> Iterator[Fields]:
    """Yields the first field of every message, then the second of those that have one, and so on.

    `TimingError` where they are not valid messages.
    """
    owner = np.flatnonzero(messages.starts < messages.ends)
    offsets, ends = messages.starts[owner], messages.ends[owner]
    for count in itertools.count():
        if not owner.size:
            return
        if count > MOST_FIELDS:
            raise TimingError(f"the profile is damaged: an event has more than {MOST_FIELDS} fields")
        read, after = read_field(messages.data, owner, offsets)
        if (after > ends).any() or (after <= offsets).any():
            raise TimingError("the profile is damaged: the fields of an event do not end where the event ends")
        yield read
        unfinished = after < ends
        owner, offsets, ends = owner[unfinished], after[unfinished], ends[unfinished]


def read_field(data: NDArray[np.uint8], owner: Ints, offsets: Ints) -> tuple[Fields, Ints]:
    """(the field at each offset, the offset of the next; the same offset where the wire type is unknown).

    data: followed by `PADDING`.
    """
    tag, after = _varint(data, offsets)
    kind = tag & np.uint64(7)
    value, begins = np.zeros(offsets.size, np.uint64), after
    if (varint := kind == _VARINT).any():
        value, after = _varint(
            data, begins
        )  # also of the others, whose result is dropped: nearly all fields are varints
        after = np.where(varint, after, begins)
    for code, size in ((_FIXED64, 8), (_FIXED32, 4)):
        if (fixed := kind == code).any():
            value[fixed] = _words(data, begins[fixed]) & np.uint64((1 << 8 * size) - 1)
            after = np.where(fixed, begins + size, after)
    if (counted := kind == _BYTES).any():
        value[counted], behind = _varint(data, begins[counted])
        begins = begins.copy()
        begins[counted] = behind
        after[counted] = behind + np.minimum(value[counted], np.uint64(data.size)).astype(np.int64)
    if (unknown := ~(varint | counted | (kind == _FIXED64) | (kind == _FIXED32))).any():
        after = np.where(unknown, offsets, after)
    return Fields(owner, (tag >> np.uint64(3)).astype(np.int64), value, begins), after


def _words(data: NDArray[np.uint8], offsets: Ints) -> Bits:
    """The eight bytes at each offset, little endian."""
    windows: Bits = np.ndarray((data.size - 7,), "<u8", data.data, strides=(1,))
    return windows[np.minimum(offsets, data.size - 8)]


def _varint(data: NDArray[np.uint8], offsets: Ints) -> tuple[Bits, Ints]:
    """(the varint at each offset, the offset of its end)."""
    words = _words(data, offsets)
    ends = ~words & _MORE
    read = ends ^ (ends - np.uint64(1))  # all bits up to the end of the varint; all 64 where it is longer than the word
    value = words & read & _LOW
    for stays, shift in _SQUEEZES:
        value = (value & stays) | ((value & ~stays) >> shift)
    after = offsets + (np.bitwise_count(read) >> 3)
    if (long := ends == 0).any():
        tail = _words(data, offsets[long] + 8)
        ninth, tenth = tail & np.uint64(0x7F), (tail >> np.uint64(8)) & np.uint64(1)
        value[long] |= (ninth << np.uint64(56)) | (tenth << np.uint64(63)) * (tail >> np.uint64(7) & np.uint64(1))
        after[long] += 1 + (tail >> np.uint64(7) & np.uint64(1)).astype(np.int64)
    return value, after
