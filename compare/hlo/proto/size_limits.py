"""How many parts a serialized message has, before they are in memory.

There an empty message takes a hundred times the two bytes that it has in a file.  Here each message is read with what
it holds as bytes alone, which takes a tenth of that.
"""

import re
from collections.abc import Mapping
from functools import cache

from google.protobuf.message import DecodeError

from compare.hlo.proto.messages import SCALARS, MessageClass, classes

SMALL_BYTES = 1 << 23
"""Of this size a file may be anything."""
_FIELD = re.compile(r"(\w+)=(\d+)([*:])(\w+)")
_NUMBERS = 32
"""As many numbers of a list take what a message takes."""


class Census:
    """Counts the parts of messages of some kinds, as `messages.classes` has them."""

    def __init__(self, package: str, messages: Mapping[str, str]):
        self._fields = {name: _FIELD.findall(fields) for name, fields in messages.items()}
        self._package = f"{package}.census"

    @cache  # noqa: B019  (of one for each format, which lives as long as the program)
    def _classes(self) -> dict[str, MessageClass]:
        flat = {
            name: " ".join(
                f"{field}={number}{count}{kind if kind in SCALARS else 'bytes'}"
                for field, number, count, kind in fields
            )
            for name, fields in self._fields.items()
        }
        return classes(self._package, flat)

    def is_within(self, data: bytes, root: str, *, most: int) -> bool:
        """True if a message has at most `most` parts, or cannot be read, which its reader reports."""
        if len(data) <= SMALL_BYTES:
            return True
        num_parts, todo = 0, [(root, data)]
        while todo:
            name, part = todo.pop()
            try:
                message = self._classes()[name].FromString(part)
            except DecodeError:
                continue
            for field, _, count, kind in self._fields[name]:
                value = getattr(message, field)
                if count == "*":
                    num_parts += (
                        len(value) if kind not in SCALARS or kind in ("bytes", "string") else len(value) // _NUMBERS
                    )
                if num_parts > most:
                    return False
                if kind not in SCALARS:
                    todo += [(kind, child) for child in (value if count == "*" else [value]) if child]
        return True
