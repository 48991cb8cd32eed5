"""A profile that is cut or damaged: its planes one by one, as far as they are whole."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compare.timing.xplane.columnar_protobuf import PADDING, read_field

_PLANES, _PLANE_NAME, _STAT_METADATA = 1, 2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    planes: tuple[bytes, ...]
    """Each ends where it should; what is inside may be damaged all the same."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    number: int
    tag: int
    """Where it begins with its tag, and where without."""
    begins: int
    ends: int
    whole: bool


def read_truncated(data: bytes) -> Truncated:
    """The planes of a profile that are there.

    A plane that is cut is kept only where the cut lies behind its events and what they are: a device of which some
    operations are missing would show a false time.
    """
    planes: list[bytes] = []
    notes: list[str] = []
    for field in _fields(data):
        inside = data[field.begins : field.ends]
        if field.number == _PLANES and field.whole:
            planes.append(inside)
        elif field.number == _PLANES:
            last = list(_fields(inside))[-1:]
            kept = bool(last) and last[0].number >= _STAT_METADATA and not last[0].whole
            notes.append(_cut(inside, kept=kept, at=len(data)))
            planes += [inside[: last[0].tag]] if kept else []
    return Truncated(planes=tuple(planes), notes=tuple(notes))


def _cut(plane: bytes, *, kept: bool, at: int) -> str:
    name = plane_name(plane)
    out = "" if kept else f"; {name!r} itself is left out, since not all of its events are there"
    return f"the file is cut at byte {at:,}, inside the plane {name!r}: planes behind it are missing{out}"


def plane_name(plane: bytes) -> str:
    """The name of a plane that may be cut or damaged; `?` where it has none."""
    names = (field for field in _fields(plane) if field.number == _PLANE_NAME and field.whole)
    return next((plane[field.begins : field.ends].decode(errors="replace") for field in names), "?")


def _fields(data: bytes) -> Iterator[_Field]:
    """The fields of a message until it ends or makes no sense; the last may be cut."""
    padded = np.frombuffer(data + PADDING, np.uint8)
    tag = 0
    while tag < len(data):
        field, after = read_field(padded, np.zeros(1, np.int64), np.array([tag]))
        ends = int(after[0])
        if not field.number[0] or ends <= tag:
            return
        whole = ends <= len(data)
        yield _Field(
            number=int(field.number[0]), tag=tag, begins=int(field.at[0]), ends=min(ends, len(data)), whole=whole
        )
        tag = ends
