"""Many small protobuf messages read at once, as columns: no Python object for any of them.

A profile holds millions of events of three or four numbers each.  Where each begins and ends protobuf says; the fields
inside are read here, the next field of every message in one stroke (protobuf.dev/programming-guides/encoding).
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from compare.timing.arrays import Ints, Mask
from compare.timing.errors import TimingError

Bits = NDArray[np.uint64]

MOST_FIELDS = 1 << 12
"""Of one message: an event has a few dozen."""
PADDING = bytes(16)
"""So that ten bytes may be looked at wherever a message begins."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MORE, _LOW = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_SQUEEZES = (
    (np.uint64(0x007F007F007F007F), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(4)),
)
"""Groups of 7 bits in every byte become groups of 14, 28, 56: what stays, and by how much its neighbour moves down."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Where each message begins and ends in one buffer."""

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
    """One field of each of some messages."""

    owner: Ints
    """Which message."""
    number: Ints
    value: Bits
    """A number, or the bits of a double; of bytes their length."""
    at: Ints
    """Where it begins in the buffer."""

    def only(self, kept: Mask) -> "Fields":
        return Fields(self.owner[kept], self.number[kept], self.value[kept], self.at[kept])


def fields(messages: Messages) -> Iterator[Fields]:
    """The first field of every message, then the second of those that have one, and so on.

    `TimingError` where they are no messages.
    """
    owner = np.flatnonzero(messages.starts < messages.ends)
    at, ends = messages.starts[owner], messages.ends[owner]
    for count in itertools.count():
        if not owner.size:
            return
        if count > MOST_FIELDS:
            raise TimingError(f"the profile is damaged: an event has more than {MOST_FIELDS} fields")
        found, after = read_field(messages.data, owner, at)
        if (after > ends).any() or (after <= at).any():
            raise TimingError("the profile is damaged: the fields of an event do not end where the event ends")
        yield found
        left = after < ends
        owner, at, ends = owner[left], after[left], ends[left]


def read_field(data: NDArray[np.uint8], owner: Ints, at: Ints) -> tuple[Fields, Ints]:
    """The field at each place, and where the next begins: at the same place where its kind is unknown.

    data: with `PADDING` behind it.
    """
    tag, after = _varint(data, at)
    kind = tag & np.uint64(7)
    value, begins = np.zeros(at.size, np.uint64), after
    if (varint := kind == _VARINT).any():
        value, after = _varint(data, begins)  # of the others too, for naught: nearly all fields are varints
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
        after = np.where(unknown, at, after)
    return Fields(owner, (tag >> np.uint64(3)).astype(np.int64), value, begins), after


def _words(data: NDArray[np.uint8], at: Ints) -> Bits:
    """The eight bytes at each place, the first the lowest."""
    every: Bits = np.ndarray((data.size - 7,), "<u8", data.data, strides=(1,))
    return every[np.minimum(at, data.size - 8)]


def _varint(data: NDArray[np.uint8], at: Ints) -> tuple[Bits, Ints]:
    """The number at each place, seven bits a byte while the eighth is set, and where it ends."""
    words = _words(data, at)
    ends = ~words & _MORE
    read = ends ^ (ends - np.uint64(1))  # every bit up to the end of the number; all, where it is longer than the word
    value = words & read & _LOW
    for stays, shift in _SQUEEZES:
        value = (value & stays) | ((value & ~stays) >> shift)
    after = at + (np.bitwise_count(read) >> 3)
    if (long := ends == 0).any():
        tail = _words(data, at[long] + 8)
        ninth, tenth = tail & np.uint64(0x7F), (tail >> np.uint64(8)) & np.uint64(1)
        value[long] |= (ninth << np.uint64(56)) | (tenth << np.uint64(63)) * (tail >> np.uint64(7) & np.uint64(1))
        after[long] += 1 + (tail >> np.uint64(7) & np.uint64(1)).astype(np.int64)
    return value, after
