"""Read XLA's profile format, `xplane.pb`, with protobuf alone, no profiler package.

Field names and numbers are those of openxla/xla's `xla/tsl/profiler/protobuf/xplane.proto`; fields of newer formats
are skipped.  Repeated messages in large numbers stay bytes here, and are read as columns in `xspace`.  Of a cut or
damaged file those planes are read that are complete.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from compare.hlo.proto.messages import classes
from compare.hlo.proto.program import is_hlo_module
from compare.hlo.text.errors import HloError
from compare.hlo.text.files import decompress, read_bytes
from compare.profile.xplane.columnar_protobuf import PADDING, Messages, read_field
from compare.profile.xplane.xspace import Metadata, Plane, ProtobufLine, Space, Value, earliest
from compare.profile.xplane.xstats import Stats
from compare.timeline.errors import TimingError

_MESSAGES = {
    "XSpace": "planes=1*bytes errors=2*bytes warnings=3*bytes",
    "XPlane": "name=2:bytes lines=3*bytes event_metadata=4*bytes stat_metadata=5*bytes stats=6*bytes",
    "EventMetadataEntry": "key=1:int64 value=2:XEventMetadata",
    "StatMetadataEntry": "key=1:int64 value=2:XStatMetadata",
    "XLine": "id=1:int64 name=2:bytes timestamp_ns=3:int64 events=4*bytes display_name=11:bytes",
    "XStat": (
        "metadata_id=1:int64 double_value=2:double uint64_value=3:uint64 int64_value=4:int64 str_value=5:bytes "
        "bytes_value=6:bytes ref_value=7:uint64"
    ),
    "XEventMetadata": "name=2:bytes display_name=4:bytes stats=5*bytes",
    "XStatMetadata": "name=2:bytes",
}
_CLASSES = classes(
    "wirediff.xplane",
    _MESSAGES,
    oneofs={
        "XStat": dict.fromkeys(
            ("double_value", "uint64_value", "int64_value", "str_value", "bytes_value", "ref_value"), "value"
        )
    },
)
MOST_BYTES, MOST_PARTS, MOST_PLANES = 80 << 20, 1 << 22, 1 << 14
"""Limits of an unpacked profile, so that reading takes at most 2 GiB: a million events are 23 MB.  A plane without any
is 2 bytes, and takes as long as hundreds of events."""


def read_file(path: str | Path) -> Space:
    """Read one profile, gzipped or not.

    `OSError` where it cannot be opened, `TimingError` where it holds no profile; either names the file.
    """
    try:
        return _read(_unpacked(read_bytes(path, most=MOST_BYTES)), str(path))
    except (TimingError, HloError) as error:
        raise TimingError(f"{path}: {error}") from None


def _unpacked(data: bytes) -> bytes:
    data = decompress(data, most=MOST_BYTES)
    if not data:
        raise TimingError("the file is empty, where an xplane.pb was expected")
    if data.lstrip()[:1] in (b"{", b"["):
        raise TimingError("JSON, as trace.json.gz is, which leaves out much; give the xplane.pb beside it")
    if data.lstrip().startswith(b"HloModule "):
        raise TimingError("HLO text, and no profile; python -m compare.hlo FILE shows its collectives")
    return data


class _Parts:
    """Counts the parts of one profile, and refuses too many before any of them is parsed."""

    def __init__(self) -> None:
        self._num = 0

    def count(self, parts: Any) -> Any:
        self._num += len(parts)
        if self._num > MOST_PARTS:
            raise TimingError(f"the profile has more than {MOST_PARTS:,} events, which are the most that are read")
        return parts

    def parse(self, kind: str, parts: Any) -> list[Any]:
        return [_CLASSES[kind].FromString(part) for part in self.count(parts)]


def _read(data: bytes, path: str) -> Space:
    parts = _Parts()
    try:
        message = _CLASSES["XSpace"].FromString(data)
        planes = [_plane(plane, parts) for plane in _few(message.planes)]
        texts = (*parts.count(message.errors), *parts.count(message.warnings))
        notes = [f"the profiler itself says: {text.decode(errors='replace')}" for text in texts]
    except DecodeError:
        planes, notes = _salvaged(data)
    if not any(plane.name.startswith("/") for plane in planes) and is_hlo_module(data):
        raise TimingError("a serialized HLO module, and no profile; python -m compare.hlo FILE shows its collectives")
    if not planes:
        raise TimingError(notes[0] if notes else "no profile of XLA, it holds no planes: give an xplane.pb")
    return Space(path=path, planes=tuple(planes), zero_ns=earliest(planes), notes=tuple(notes))


def _few(planes: Any) -> Any:
    if len(planes) > MOST_PLANES:
        raise TimingError(f"the profile has {len(planes):,} planes, of which at most {MOST_PLANES:,} are read")
    return planes


def _salvaged(data: bytes) -> tuple[list[Plane], list[str]]:
    """(readable planes of a damaged file, notes on the others)."""
    truncated, parts = read_truncated(data), _Parts()
    planes, notes = [], list(truncated.notes)
    for plane in _few(truncated.planes):
        try:
            planes.append(_plane(plane, parts))
        except DecodeError:
            notes.append(f"the plane {plane_name(plane)!r} is damaged, and left out")
    if not planes and not notes:
        notes = ["no profile of XLA: it is no protobuf; give an xplane.pb"]
    return planes, notes or ["the file is damaged behind its planes"]


def _plane(data: bytes, parts: _Parts) -> Plane:
    message = _CLASSES["XPlane"].FromString(data)
    names = parts.parse("StatMetadataEntry", message.stat_metadata)
    stat_names = {entry.key: entry.value.name.decode(errors="replace") for entry in names}
    metadata = _metadata(parts.parse("EventMetadataEntry", message.event_metadata), stat_names, parts)
    lines, stats = parts.parse("XLine", message.lines), parts.parse("XStat", message.stats)
    for line in lines:
        parts.count(line.events)
    return Plane(
        name=message.name.decode(errors="replace"),
        lines=tuple(ProtobufLine(line, metadata, stat_names) for line in lines),
        metadata=metadata,
        stats={stat_names.get(stat.metadata_id, ""): _value(stat, stat_names) for stat in stats},
        stat_names=stat_names,
    )


def _metadata(entries: list[Any], stat_names: Mapping[int, str], parts: _Parts) -> Metadata:
    names = [entry.value.name.decode(errors="replace") for entry in entries]
    short = [entry.value.display_name.decode(errors="replace") for entry in entries]
    stats = [list(parts.count(entry.value.stats)) for entry in entries]
    owner = np.repeat(np.arange(len(stats)), [len(row_stats) for row_stats in stats])
    messages = Messages.of([stat for row_stats in stats for stat in row_stats])
    return Metadata(
        [entry.key for entry in entries],
        names,
        [short_name or name for short_name, name in zip(short, names, strict=True)],
        Stats(messages, owner, count=len(names), names=stat_names),
    )


def _value(stat: Any, names: Mapping[int, str]) -> Value:
    kind = stat.WhichOneof("value")
    if kind is None:
        return ""
    value: Value = getattr(stat, kind)
    if kind == "ref_value":
        return names.get(stat.ref_value, "")
    return value.decode(errors="replace") if kind == "str_value" and isinstance(value, bytes) else value


_ENDINGS = ("*.xplane.pb", "*.xplane.pb.gz")
_TRACES = ("*.trace.json", "*.trace.json.gz")
_SHOWN = 5


def profile_files(path: str | Path) -> list[Path]:
    """The files of the single session in or below a folder; or the given file.

    Chrome traces only where there is no `xplane.pb`; of a trace that is also there gzipped, the other.  `TimingError`
    where there is no session, or more than one.
    """
    path = Path(path)
    if not path.is_dir():
        return [path]
    files = sorted({file for ending in _ENDINGS for file in path.rglob(ending)}) or _traces(path)
    sessions = sorted({file.parent for file in files})
    if not sessions:
        raise TimingError(
            f"{path}: no profile in this folder (no *.xplane.pb at any depth, and no *.trace.json or *.trace.json.gz)"
        )
    if len(sessions) > 1:
        named = ", ".join(str(folder) for folder in sessions[:_SHOWN])
        rest = f" and {len(sessions) - _SHOWN} more" if len(sessions) > _SHOWN else ""
        raise TimingError(f"{path}: {len(sessions)} sessions; name one of them: {named}{rest}")
    return files


def _traces(folder: Path) -> list[Path]:
    """Chrome traces; gzipped ones only where no other has the same name."""
    plain, packed = (sorted(folder.rglob(ending)) for ending in _TRACES)
    names = {file.name for file in plain}
    return plain + [file for file in packed if file.name.removesuffix(".gz") not in names]


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
