"""Profiles made by hand, byte by byte: an XSpace of any layout, written without the code that reads them.

Field numbers are those of openxla/xla's `xla/tsl/profiler/protobuf/xplane.proto`.  Times are in ns.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Stat = int | float | str | bytes


@dataclass(frozen=True)
class Ref:
    """A word that stands in the table of statistics' names."""

    word: str


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(key: int, value: int) -> bytes:
    return varint(key << 3) + varint(value)


def data(key: int, value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return varint(key << 3 | 2) + varint(len(value)) + value


@dataclass
class Line:
    plane: "Plane"
    name: str
    id: int
    timestamp_ns: int
    display_name: str = ""
    events: list[bytes] = field(default_factory=list)

    def event(
        self,
        name: str,
        start: float,
        duration: float,
        *,
        display: str = "",
        stats: Mapping[str, Stat | Ref] | None = None,
        about: Mapping[str, Stat | Ref] | None = None,
    ) -> "Line":
        """One event, from the line's own time.  about: statistics of its metadata, told once for each name."""
        key = self.plane.metadata_id(name, display, about or {})
        joined = b"".join(data(4, self.plane.stat(word, value)) for word, value in (stats or {}).items())
        picoseconds = number(2, round(start * 1000)) + number(3, round(duration * 1000))
        self.events.append(number(1, key) + picoseconds + joined)
        return self

    def serialized(self) -> bytes:
        head = number(1, self.id) + data(2, self.name) + data(11, self.display_name) + number(3, self.timestamp_ns)
        return head + b"".join(data(4, event) for event in self.events)


@dataclass
class Plane:
    name: str
    stats: Mapping[str, Stat | Ref] = field(default_factory=dict)
    timestamp_ns: int = 1_700_000_000_000_000_000
    lines: list[Line] = field(default_factory=list)
    metadata: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    stat_names: dict[str, int] = field(default_factory=dict)

    def line(self, name: str, *, id: int = 0, timestamp_ns: int | None = None) -> Line:
        at = self.timestamp_ns if timestamp_ns is None else timestamp_ns
        self.lines.append(Line(self, name, id or len(self.lines) + 1, at))
        return self.lines[-1]

    def metadata_id(self, name: str, display: str, about: Mapping[str, Stat | Ref]) -> int:
        if name not in self.metadata:
            key = len(self.metadata) + 1
            joined = b"".join(data(5, self.stat(word, value)) for word, value in about.items())
            self.metadata[name] = key, number(1, key) + data(2, name) + (data(4, display) if display else b"") + joined
        return self.metadata[name][0]

    def stat(self, word: str, value: Stat | Ref) -> bytes:
        key = number(1, self.stat_id(word))
        if isinstance(value, Ref):
            return key + number(7, self.stat_id(value.word))
        if isinstance(value, float):
            return key + varint(2 << 3 | 1) + struct.pack("<d", value)
        if isinstance(value, int):
            return key + number(4, value)
        return key + data(6 if isinstance(value, bytes) else 5, value)

    def stat_id(self, word: str) -> int:
        return self.stat_names.setdefault(word, len(self.stat_names) + 1)

    def serialized(self, id: int) -> bytes:
        stats = b"".join(data(6, self.stat(word, value)) for word, value in self.stats.items())
        entries = b"".join(data(4, number(1, key) + data(2, about)) for key, about in self.metadata.values())
        names = b"".join(
            data(5, number(1, key) + data(2, number(1, key) + data(2, word))) for word, key in self.stat_names.items()
        )
        lines = b"".join(data(3, line.serialized()) for line in self.lines)
        return number(1, id) + data(2, self.name) + lines + entries + names + stats


@dataclass
class Space:
    planes: list[Plane] = field(default_factory=list)
    hostname: str = "host"

    def plane(self, name: str, **stats: Stat | Ref) -> Plane:
        self.planes.append(Plane(name, stats))
        return self.planes[-1]

    def programs(self, protos: Mapping[str, bytes]) -> None:
        """The plane in which a profile holds its programs, like `jit_f(17)`, as HloProto."""
        plane = self.plane("/host:metadata")
        for name, proto in protos.items():
            plane.metadata_id(name, name, {"Hlo Proto": proto})

    def serialized(self) -> bytes:
        planes = (data(1, plane.serialized(id)) for id, plane in enumerate(self.planes))
        return b"".join(planes) + data(4, self.hostname)

    def write(self, folder: Path, name: str = "host") -> Path:
        """As a profiler would, in a session's folder."""
        path = folder / "plugins" / "profile" / "2026_01_01_00_00_00" / f"{name}.xplane.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.serialized())
        return path


def tpu(space: Space, device: int, ops: Iterable[tuple[str, float, float]], **lines: Iterable[tuple]) -> Plane:
    """A TensorCore: its operations as (HLO line, start, duration), and other lines by name, `_` for a space."""
    plane = space.plane(f"/device:TPU:{device}", device_type_string="TPU v5 lite")
    for name, events in {"XLA_Ops": ops, **lines}.items():
        line = plane.line(name.replace("_", " "))
        for text, start, duration, *more in events:
            line.event(text, start, duration, display=short(text), **(more[0] if more else {}))
    return plane


def short(text: str) -> str:
    """`all-reduce.1`, of `%all-reduce.1 = …`."""
    return text.partition(" = ")[0].removeprefix("%") if " = " in text else ""
