"""Messages one after the other in a file, each behind its length as a varint; no magic number, no compression."""

from collections.abc import Iterator

MOST_BYTES = 1 << 30
"""Of one file of a trace."""
_LONGEST = 10
"""Bytes of a varint of 64 bits."""


def frame(message: bytes) -> bytes:
    """A message behind its length."""
    size, head = len(message), bytearray()
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + message


def unframe(data: bytes) -> Iterator[bytes]:
    """The messages of a file.  `ValueError`, whose text continues `FILE `, where it is cut or damaged."""
    offset, end, count = 0, len(data), 0
    while offset < end:
        size, shift, begin = 0, 0, offset
        while True:
            if offset >= end:
                raise ValueError(f"is cut in the length of message {count:,}, at byte {begin:,}")
            byte = data[offset]
            offset += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= 7 * _LONGEST:
                raise ValueError(f"is no Chakra trace: at byte {begin:,} stands no length of a message")
        if size > end - offset:
            raise ValueError(f"is cut: message {count:,} has {size:,} bytes, and {end - offset:,} are left")
        yield data[offset : offset + size]
        offset += size
        count += 1
