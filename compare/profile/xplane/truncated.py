"""Read a truncated or damaged profile: those planes that are complete."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compare.profile.xplane.columnar_protobuf import PADDING, read_field

_PLANES, _PLANE_NAME, _STAT_METADATA = 1, 2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    planes: tuple[bytes, ...]
    """Each has its full length; its contents may still be damaged."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    number: int
    tag: int
    """Offset of its tag; `begins` is the offset of its value."""
    begins: int
    ends: int
    is_complete: bool


def read_truncated(data: bytes) -> Truncated:
    """The complete planes of a profile.

    A truncated plane is kept only if the cut is behind its events and their metadata: a device with missing operations
    would show wrong times.
    """
    planes: list[bytes] = []
    notes: list[str] = []
    for field in _fields(data):
        inside = data[field.begins : field.ends]
        if field.number == _PLANES and field.is_complete:
            planes.append(inside)
        elif field.number == _PLANES:
            last = list(_fields(inside))[-1:]
            kept = bool(last) and last[0].number >= _STAT_METADATA and not last[0].is_complete
            notes.append(_cut(inside, kept=kept, size=len(data)))
            planes += [inside[: last[0].tag]] if kept else []
    return Truncated(planes=tuple(planes), notes=tuple(notes))


def _cut(plane: bytes, *, kept: bool, size: int) -> str:
    name = plane_name(plane)
    out = "" if kept else f"; {name!r} itself is left out, since not all of its events are there"
    return f"the file is cut at byte {size:,}, inside the plane {name!r}: planes behind it are missing{out}"


def plane_name(plane: bytes) -> str:
    """The name of a plane that may be truncated or damaged; `?` where it has none."""
    names = (field for field in _fields(plane) if field.number == _PLANE_NAME and field.is_complete)
    return next((plane[field.begins : field.ends].decode(errors="replace") for field in names), "?")


def _fields(data: bytes) -> Iterator[_Field]:
    """The fields of a message up to its end or the first invalid one; the last may be truncated."""
    padded = np.frombuffer(data + PADDING, np.uint8)
    tag = 0
    while tag < len(data):
        field, after = read_field(padded, np.zeros(1, np.int64), np.array([tag]))
        ends = int(after[0])
        if not field.number[0] or ends <= tag:
            return
        is_complete = ends <= len(data)
        yield _Field(
            number=int(field.number[0]),
            tag=tag,
            begins=int(field.offset[0]),
            ends=min(ends, len(data)),
            is_complete=is_complete,
        )
        tag = ends
