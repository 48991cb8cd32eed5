"""The events of a Chrome trace, read as columns: in pieces of which few strings become objects.

The format is "Trace Event Format" (Google, 2016): `{"traceEvents": [{"ph": "X", "ts": …, "dur": …, "args": {…}}, …]}`,
or the list alone; times in µs.  What XLA's profiler writes in `args` stands in openxla/xprof's
`xprof/convert/trace_viewer/trace_events_to_json.h`: numbers of 64 bits are strings.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from gzip import GzipFile
from typing import BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.timing.arrays import Floats, Ints
from compare.timing.errors import TimingError

MOST_EVENTS = 1 << 22
"""Of one trace, as of one `xplane.pb`."""
_PIECE = 1 << 19
_LONGEST = 64 << 20
"""Of what stands before the events, behind them, or of one event."""
_TRIES = 8
"""Places at which a piece may end; in a string or a nested list all but the last few look like the end of an event."""
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*$")
_NOTHING = msgspec.Raw(b"")
_NO_NUMBER = -1
Known = dict[str, object]


class _Args(msgspec.Struct, gc=False, frozen=True):
    """What is read of every event's `args`, in the order of the profiler.  Words stay bytes: few are different."""

    device_duration_ps: float = math.nan
    device_offset_ps: float = math.nan
    hlo_category: msgspec.Raw = _NOTHING
    long_name: msgspec.Raw = _NOTHING
    name: msgspec.Raw = _NOTHING
    run_id: int = _NO_NUMBER
    step_num: int = _NO_NUMBER
    wait_ps: float = math.nan


_NO_ARGS = _Args()


class _Event(msgspec.Struct, gc=False):
    args: _Args = _NO_ARGS
    dur: float = math.nan
    name: str = ""
    ph: str = ""
    pid: int = _NO_NUMBER
    tid: int = _NO_NUMBER
    ts: float = math.nan


class _Facts(msgspec.Struct, gc=False, frozen=True):
    """What `args` say of the operation: of every event of one line of HLO the same."""

    long_name: msgspec.Raw = _NOTHING
    hlo_category: msgspec.Raw = _NOTHING
    tf_op: msgspec.Raw = _NOTHING
    shape_with_layout: msgspec.Raw = _NOTHING
    hlo_op: msgspec.Raw = _NOTHING
    bytes_accessed: float = math.nan
    raw_bytes_accessed: float = math.nan
    model_flops: float = math.nan


class _EventFacts(msgspec.Struct, gc=False):
    args: _Facts = _Facts()


_EVENTS_OF = msgspec.json.Decoder(list[_Event], strict=False)
_FACTS_OF = msgspec.json.Decoder(list[_EventFacts], strict=False)
_ANYTHING_OF = msgspec.json.Decoder(list[object])


@dataclass(frozen=True, slots=True)
class Kind:
    """What many events have in common; NaN and "" where the trace does not show it."""

    name: str
    long_name: str = ""
    hlo_category: str = ""
    tf_op: str = ""
    shape: str = ""
    hlo_op: str = ""
    bytes_accessed: float = math.nan
    model_flops: float = math.nan


NUMBERS = ("ts", "dur", "device_offset_ps", "device_duration_ps", "wait_ps")
"""Columns of numbers, NaN where an event has none."""
WHOLE = ("run_id", "step_num")
"""Columns of whole numbers, -1 where an event has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvents:
    """The events with a duration (`ph` X), a column each, and what the trace says of its processes."""

    kinds: tuple[Kind, ...]
    kind: NDArray[np.int32]
    threads: tuple[tuple[int, int], ...]
    """Process and thread."""
    thread: NDArray[np.int32]
    numbers: dict[str, Floats]
    """By NUMBERS: `ts` and `dur` in µs."""
    whole: dict[str, Ints]
    """By WHOLE."""
    process_names: dict[int, str]
    thread_names: dict[tuple[int, int], str]
    about: Known
    """The keys beside `traceEvents`."""
    notes: tuple[str, ...]


@dataclass
class _Columns:
    """The columns of the events read so far."""

    kinds: dict[Kind, int] = field(default_factory=dict)
    by_line: dict[str, tuple[msgspec.Raw, int]] = field(default_factory=dict)
    """Of each name the line of HLO that was read last, and its kind."""
    by_name: dict[str, int] = field(default_factory=dict)
    """Of each name without HLO the kind."""
    threads: dict[tuple[int, int], int] = field(default_factory=dict)
    pieces: list[tuple[NDArray[np.float64 | np.int64 | np.int32], ...]] = field(default_factory=list)
    """Columns of each piece: kind, thread, those of NUMBERS, those of WHOLE."""
    process_names: dict[int, str] = field(default_factory=dict)
    thread_names: dict[tuple[int, int], str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    count: int = 0

    def add(self, piece: "_Text") -> None:
        events, places = piece.events, None
        if any([event.ph != "X" or not event.dur >= 0 or event.ts != event.ts for event in events]):
            places = [place for place, event in enumerate(events) if self._is_timed(event)]
            events = [events[place] for place in places]
        self.count += len(events)
        if self.count > MOST_EVENTS:
            raise TimingError(f"the trace has more than {MOST_EVENTS:,} events, which are the most that are read")
        args = [event.args for event in events]
        self.pieces.append((
            self._kinds_of(piece, events, args, places), self._threads_of(events),
            np.array([event.ts for event in events], np.float64), np.array([event.dur for event in events], np.float64),
            np.array([row.device_offset_ps for row in args], np.float64),
            np.array([row.device_duration_ps for row in args], np.float64),
            np.array([row.wait_ps for row in args], np.float64),
            _whole([row.run_id for row in args]),
            _whole([row.step_num for row in args]),
        ))  # fmt: skip

    def _kinds_of(
        self, piece: "_Text", events: list[_Event], args: list[_Args], places: list[int] | None
    ) -> NDArray[np.int32]:
        by_line, by_name, nothing = self.by_line, self.by_name, _NOTHING
        kinds: list[int] = []
        for at, (event, row) in enumerate(zip(events, args, strict=True)):
            line, name = row.long_name, event.name
            if line is not nothing:
                latest = by_line.get(name)
                if latest is None or latest[0] != line:
                    code = self._code(_kind(name, piece.facts(places[at] if places else at)))
                    latest = by_line[name] = line.copy(), code
                kinds.append(latest[1])
            elif row.hlo_category is not nothing:
                kinds.append(self._code(_kind(name, piece.facts(places[at] if places else at))))
            else:
                known = by_name.get(name)
                if known is None:
                    known = by_name[name] = self._code(Kind(name))
                kinds.append(known)
        return np.array(kinds, np.int32)

    def _threads_of(self, events: list[_Event]) -> NDArray[np.int32]:
        """Events of one thread mostly follow each other."""
        process = np.array([event.pid for event in events], np.int64)
        thread = np.array([event.tid for event in events], np.int64)
        begins = np.flatnonzero(np.append(True, (np.diff(process) != 0) | (np.diff(thread) != 0))[: len(events)])
        keys = zip(process[begins].tolist(), thread[begins].tolist(), strict=True)
        codes = [self.threads.setdefault(key, len(self.threads)) for key in keys]
        return np.repeat(np.array(codes, np.int32), np.diff(np.append(begins, len(events))))

    def _is_timed(self, event: _Event) -> bool:
        if event.ph == "X" and event.dur >= 0 and event.ts == event.ts:
            return True
        self._set_aside(event)
        return False

    def _code(self, kind: Kind) -> int:
        return self.kinds.setdefault(kind, len(self.kinds))

    def _set_aside(self, event: _Event) -> None:
        """Read the names of processes and threads; count what has no duration."""
        if event.ph == "M":
            if event.name == "process_name":
                self.process_names[event.pid] = _text(event.args.name)
            elif event.name == "thread_name":
                self.thread_names[event.pid, event.tid] = _text(event.args.name)
        elif event.ph == "X":
            self.left_out["have no time or duration"] += 1
        elif event.ph or event.name:  # XLA's profiler ends the list with {}
            self.left_out[f"are of phase {event.ph[:8]!r}, which has no duration of its own"] += 1

    def read(self, about: Known) -> TraceEvents:
        joined = [np.concatenate(parts) for parts in zip(*self.pieces, strict=True)]
        return TraceEvents(
            kinds=tuple(self.kinds),
            kind=joined[0].astype(np.int32),
            threads=tuple(self.threads),
            thread=joined[1].astype(np.int32),
            numbers=dict(zip(NUMBERS, joined[2:7], strict=True)),
            whole=dict(zip(WHOLE, joined[7:], strict=True)),
            process_names=self.process_names,
            thread_names=self.thread_names,
            about=about,
            notes=tuple(f"{count} events of the trace {what}: left out" for what, count in self.left_out.items()),
        )


class _Text:
    """A JSON list of events: read for what differs from event to event, and again for what is new in it."""

    def __init__(self, text: bytes, odd: Counter[str]):
        self._text = text
        try:
            self.events: list[_Event] = _EVENTS_OF.decode(text)
        except msgspec.ValidationError:
            self._text = _readable(_ANYTHING_OF.decode(text), odd)
            self.events = _EVENTS_OF.decode(self._text)
        self._facts: list[_EventFacts] | None = None

    def facts(self, place: int) -> _Facts:
        if self._facts is None:
            self._facts = _FACTS_OF.decode(self._text)
        return self._facts[place].args


def _kind(name: str, facts: _Facts) -> Kind:
    long_name, category, tf_op = _text(facts.long_name), _text(facts.hlo_category), _text(facts.tf_op)
    shape, hlo_op = _text(facts.shape_with_layout), _text(facts.hlo_op)
    accessed = facts.bytes_accessed if facts.bytes_accessed == facts.bytes_accessed else facts.raw_bytes_accessed
    return Kind(name, long_name, category, tf_op, shape, hlo_op, accessed, facts.model_flops)


def _whole(values: list[int]) -> Ints:
    try:
        return np.array(values, np.int64)
    except OverflowError:  # 64 bits without a sign: the bits
        return np.array([value % 2**64 for value in values], np.uint64).view(np.int64)


def _text(raw: msgspec.Raw) -> str:
    """A JSON string as text; of anything else what stands there."""
    data = bytes(raw)
    if not data:
        return ""
    value = msgspec.json.decode(data)
    return value if isinstance(value, str) else data.decode(errors="replace")


def read_events(file: BinaryIO) -> TraceEvents:
    """Every event of a trace.  `TimingError` where it is no JSON, no trace, or cut."""
    columns = _Columns()
    try:
        source = _Source(file)
        for piece in source.pieces(columns.left_out):
            columns.add(piece)
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TimingError("the gzip file is cut or damaged") from None
    if not columns.count:
        raise TimingError("the trace is empty: no event in it has a duration")
    return columns.read(source.about)


class _Source:
    """A file, event by event, in pieces that are JSON lists."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.about: Known = {}
        self._is_list = False

    def pieces(self, odd: Counter[str]) -> Iterator[_Text]:
        rest = self._head()
        while True:
            more = self._file.read(_PIECE)
            rest += more
            if not more:
                yield self._last(rest, odd)
                return
            piece, size = _first_events(rest, odd)
            if piece is None and len(rest) > _LONGEST:
                raise TimingError("no JSON of a trace: an event in it does not end")
            if piece is not None:
                yield piece
                rest = rest[size:]

    def _head(self) -> bytes:
        """Up to the list of events; what comes of it is the beginning of that list."""
        head = b""
        while len(head) <= _LONGEST:
            more = self._file.read(_PIECE)
            head += more
            start = head.lstrip()
            if start[:1] == b"[":
                self._is_list = True
                return start[1:]
            if start and start[:1] != b"{":
                break
            if match := _EVENTS.search(head):
                self._learn(head[: match.start()].rstrip().rstrip(b",") + b"}")
                return head[match.end() :]
            if not more:
                if not start:
                    raise TimingError("the file is empty, where a trace was expected")
                try:
                    msgspec.json.decode(head)
                except msgspec.DecodeError as error:
                    raise TimingError(f"no JSON, or cut: {error}") from None
                raise TimingError("JSON, and no trace: it has no traceEvents")
        raise TimingError("no trace: JSON with traceEvents was expected")

    def _learn(self, text: bytes) -> None:
        try:
            keys = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TimingError(f"no JSON of a trace: {error}") from None
        if isinstance(keys, dict):
            self.about |= keys

    def _last(self, rest: bytes, odd: Counter[str]) -> _Text:
        """What is left, without what closes the trace."""
        end = len(rest)
        for _ in range(1000):
            end = rest.rfind(b"]", 0, end)
            if end < 0:
                break
            behind = rest[end + 1 :].strip()
            try:
                if self._is_list and behind:
                    raise TimingError("no JSON of a trace: something stands behind the list of events")
                if not self._is_list:
                    self._learn(b"{" + behind.removeprefix(b","))
                return _Text(b"[" + rest[:end].rstrip().removesuffix(b",") + b"]", odd)
            except (TimingError, msgspec.DecodeError):
                continue
        raise TimingError("the JSON is cut, or damaged: its list of events does not end")


def _first_events(text: bytes, odd: Counter[str]) -> tuple[_Text | None, int]:
    """The events that are whole, and where the next begins; None where no end of an event can be told yet."""
    at = len(text)
    for _ in range(_TRIES):
        while True:
            at = text.rfind(b'{"', 0, at)
            if at <= 0:
                return None, 0
            if match := _BETWEEN.search(text, max(0, at - 64), at):
                break
        try:
            return _Text(b"".join((b"[", memoryview(text)[: match.start() + 1], b"]")), odd), at
        except (msgspec.DecodeError, RecursionError):
            continue
    return None, 0


def _readable(values: list[object], odd: Counter[str]) -> bytes:
    """The list without what is no event, which is counted by what is wrong with it."""
    kept = []
    for value in values:
        text = msgspec.json.encode(value)
        try:
            msgspec.json.decode(text, type=_Event, strict=False)
            msgspec.json.decode(text, type=_EventFacts, strict=False)
        except msgspec.ValidationError as error:
            odd[f"cannot be read ({error})"] += 1
        else:
            kept.append(text)
    return b"[" + b",".join(kept) + b"]"


def open_trace(file: BinaryIO) -> BinaryIO:
    """The file, unpacked where it is gzipped."""
    magic = file.read(2)
    file.seek(0)
    return GzipFile(fileobj=file) if magic == b"\x1f\x8b" else file  # type: ignore[return-value]
