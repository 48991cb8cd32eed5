"""The events of one Chrome trace, decoded by msgspec.

The format is "Trace Event Format" (Google, 2016): `{"traceEvents": [{"ph": "X", "ts": …, "dur": …, "args": {…}}, …]}`,
or the list alone; times in µs.  What XLA's profiler writes in `args` stands in openxla/xprof's
`xprof/convert/trace_viewer/trace_events_to_json.h`: numbers of 64 bits are strings.
"""

import gzip
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from compare.timeline.errors import TimingError

MOST_BYTES = 1 << 30
"""Of a trace, unpacked: all of it is in memory at once."""
MOST_OBJECTS = 1 << 25
"""An empty event takes 80 bytes, of which two stand in the file."""
MOST_VALUES = 1 << 26
"""As many, of a trace in which something is no event."""
_MOST_ABOUT = 1 << 24
"""Bytes of a key beside `traceEvents` that is read."""
_PIECE = 1 << 20
_BATCH = 1 << 14
NOTHING = msgspec.Raw(b"")
NO_NUMBER = -1
Known = dict[str, object]
Events = list[tuple["Event", "Args"]]


class Args(msgspec.Struct, gc=False, frozen=True):
    """What is read of every event's `args`, in the order of the profiler.  Words stay bytes: few are different."""

    device_duration_ps: float = math.nan
    device_offset_ps: float = math.nan
    hlo_category: msgspec.Raw = NOTHING
    long_name: msgspec.Raw = NOTHING
    name: msgspec.Raw = NOTHING
    run_id: int = NO_NUMBER
    step_num: int = NO_NUMBER
    wait_ps: float = math.nan


class Event(msgspec.Struct, gc=False):
    args: msgspec.Raw = msgspec.Raw(b"{}")
    dur: float = math.nan
    name: str = ""
    ph: str = ""
    pid: int = NO_NUMBER
    tid: int = NO_NUMBER
    ts: float = math.nan


class Facts(msgspec.Struct, gc=False, frozen=True):
    """What `args` say of the operation: of every event of one line of HLO the same."""

    long_name: msgspec.Raw = NOTHING
    hlo_category: msgspec.Raw = NOTHING
    tf_op: msgspec.Raw = NOTHING
    shape_with_layout: msgspec.Raw = NOTHING
    hlo_op: msgspec.Raw = NOTHING
    source: msgspec.Raw = NOTHING
    source_stack: msgspec.Raw = NOTHING
    bytes_accessed: float = math.nan
    raw_bytes_accessed: float = math.nan
    model_flops: float = math.nan


class _About(msgspec.Struct):
    """The keys beside the events that say what a trace is."""

    deviceProperties: msgspec.Raw = NOTHING  # noqa: N815  (PyTorch's name)
    metadata: msgspec.Raw = NOTHING
    otherData: msgspec.Raw = NOTHING  # noqa: N815  (the format's name)


class _Trace(_About):
    traceEvents: list[Event] | None = None  # noqa: N815


class _RawTrace(_About, kw_only=True):
    traceEvents: list[msgspec.Raw]  # noqa: N815


_TRACE = msgspec.json.Decoder(_Trace, strict=False)
_EVENTS = msgspec.json.Decoder(list[Event], strict=False)
_EVENT = msgspec.json.Decoder(Event, strict=False)
_RAW_TRACE, _RAW_EVENTS = msgspec.json.Decoder(_RawTrace), msgspec.json.Decoder(list[msgspec.Raw])
_ARGS = msgspec.json.Decoder(Args, strict=False)
_FACTS = msgspec.json.Decoder(Facts, strict=False)


class Trace:
    """The events of a trace; `odd` counts those that cannot be read, by what is wrong with them.

    `TimingError` where it is no JSON, or no trace.
    """

    def __init__(self, data: bytes | bytearray):
        self.odd = Counter[str]()
        # A pattern takes 4 s for half a gigabyte of blanks; `lstrip` copies what is behind them.
        start = (data[:_PIECE].lstrip() or data.lstrip())[:1]
        if not start:
            raise TimingError("the file is empty, where a trace was expected")
        if start not in (b"{", b"["):
            raise TimingError("no trace: JSON with traceEvents was expected")
        if data.count(b"{") > MOST_OBJECTS:
            raise TimingError(f"the trace has more than {MOST_OBJECTS:,} objects, which are the most that are read")
        try:
            self._events, self.about = self._decode(data, is_list=start == b"[")
        except msgspec.DecodeError as error:
            raise TimingError(f"the JSON is cut, or damaged: {error}") from None
        except RecursionError:
            raise TimingError("no JSON of a trace: it is nested too deeply") from None

    def batches(self) -> Iterator[Events]:
        """Events with their `args`, some at a time."""
        for start in range(0, len(self._events), _BATCH):
            events = self._events[start : start + _BATCH]
            try:
                yield [(event, _ARGS.decode(event.args)) for event in events]
            except msgspec.ValidationError:
                yield [(event, args) for event in events if (args := self._decode_args(event)) is not None]

    def read_facts(self, event: Event) -> Facts:
        """What an event says of its operation."""
        try:
            return _FACTS.decode(event.args)
        except msgspec.ValidationError as error:
            self.odd[f"say of their operation what cannot be read ({error}): read without it"] += 1
            return Facts()

    def _decode(self, data: bytes | bytearray, *, is_list: bool) -> tuple[list[Event], Known]:
        try:
            trace = _Trace(traceEvents=_EVENTS.decode(data)) if is_list else _TRACE.decode(data)
            if trace.traceEvents is None:
                raise TimingError("JSON, and no trace: it has no traceEvents")
            return trace.traceEvents, _read_about(trace)
        except msgspec.ValidationError:
            return self._decode_each(data, is_list=is_list)

    def _decode_each(self, data: bytes | bytearray, *, is_list: bool) -> tuple[list[Event], Known]:
        """The same where something is no event."""
        if data.count(b",") > MOST_VALUES:
            raise TimingError(f"something in the trace is no event, and it has more than {MOST_VALUES:,} values")
        try:
            trace = _RawTrace(traceEvents=_RAW_EVENTS.decode(data)) if is_list else _RAW_TRACE.decode(data)
        except msgspec.ValidationError as error:
            raise TimingError(f"JSON, and no trace: {error}") from None
        return list(filter(None, map(self._decode_event, trace.traceEvents))), _read_about(trace)

    def _decode_event(self, text: msgspec.Raw) -> Event | None:
        try:
            return _EVENT.decode(text)
        except msgspec.ValidationError as error:
            self.odd[f"cannot be read ({error}): left out"] += 1
            return None

    def _decode_args(self, event: Event) -> Args | None:
        try:
            return _ARGS.decode(event.args)
        except msgspec.ValidationError as error:
            self.odd[f"cannot be read (args: {error}): left out"] += 1
            return None


def _read_about(trace: _About) -> Known:
    keys = {name: getattr(trace, name) for name in _About.__struct_fields__}
    return {name: msgspec.json.decode(raw) for name, raw in keys.items() if 0 < len(bytes(raw)) <= _MOST_ABOUT}


def read_start(path: Path) -> bytes:
    """The first bytes of a file, unpacked where it is gzipped; none where they cannot be unpacked."""
    try:
        with _open(path) as file:
            return file.read(64)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return b""


def read_file(path: Path) -> bytearray:
    """A file, unpacked where it is gzipped.  `OSError`; `TimingError` where it is cut, damaged or too large."""
    data = bytearray()
    try:
        with _open(path) as file:
            while piece := file.read(_PIECE):
                data += piece
                if len(data) > MOST_BYTES:
                    raise TimingError(f"the trace has more than {MOST_BYTES:,} bytes, which are the most that are read")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TimingError("the gzip file is cut or damaged") from None
    return data


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if is_packed else path.open("rb")
