"""The events of a Chrome trace, read as columns: in pieces of some megabytes, of which few strings become objects.

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
_PIECE = 4 << 20
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
    """What is read of an event's `args`.  Words stay bytes: few are different."""

    name: msgspec.Raw = _NOTHING
    long_name: msgspec.Raw = _NOTHING
    hlo_category: msgspec.Raw = _NOTHING
    tf_op: msgspec.Raw = _NOTHING
    shape_with_layout: msgspec.Raw = _NOTHING
    hlo_op: msgspec.Raw = _NOTHING
    device_offset_ps: float = math.nan
    device_duration_ps: float = math.nan
    bytes_accessed: float = math.nan
    raw_bytes_accessed: float = math.nan
    model_flops: float = math.nan
    wait_ps: float = math.nan
    run_id: int = _NO_NUMBER
    step_num: int = _NO_NUMBER


_NO_ARGS = _Args()


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str = ""
    pid: int = _NO_NUMBER
    tid: int = _NO_NUMBER
    ts: float = math.nan
    dur: float = math.nan
    args: _Args = _NO_ARGS


_TYPED = msgspec.json.Decoder(list[_Event], strict=False)
_UNTYPED = msgspec.json.Decoder(list[object])


@dataclass(frozen=True, slots=True)
class Kind:
    """What many events have in common."""

    name: str
    long_name: str
    hlo_category: str
    tf_op: str
    shape: str
    hlo_op: str


NUMBERS = ("ts", "dur", "device_offset_ps", "device_duration_ps", "bytes_accessed", "model_flops", "wait_ps")
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
    """What was read so far."""

    kinds: dict[tuple[str, bytes, bytes, bytes, bytes, bytes], int] = field(default_factory=dict)
    latest: dict[str, tuple[int, _Args]] = field(default_factory=dict)
    """Of each name the kind of the event before, and its words."""
    threads: dict[tuple[int, int], int] = field(default_factory=dict)
    kind: list[NDArray[np.int32]] = field(default_factory=list)
    thread: list[NDArray[np.int32]] = field(default_factory=list)
    numbers: list[tuple[Floats, ...]] = field(default_factory=list)
    whole: list[tuple[Ints, ...]] = field(default_factory=list)
    process_names: dict[int, str] = field(default_factory=dict)
    thread_names: dict[tuple[int, int], str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    count: int = 0

    def add(self, events: list[_Event]) -> None:
        timed = []
        for event in events:
            if event.ph == "X" and event.dur >= 0 and math.isfinite(event.ts):
                timed.append(event)
            else:
                self._set_aside(event)
        self.count += len(timed)
        if self.count > MOST_EVENTS:
            raise TimingError(f"the trace has more than {MOST_EVENTS:,} events, which are the most that are read")
        self.kind.append(np.fromiter(map(self._kind_of, timed), np.int32, len(timed)))
        threads = self.threads
        of_thread = [threads.setdefault((event.pid, event.tid), len(threads)) for event in timed]
        self.thread.append(np.array(of_thread, np.int32))
        args = [event.args for event in timed]
        self.numbers.append((
            np.array([event.ts for event in timed]), np.array([event.dur for event in timed]),
            np.array([own.device_offset_ps for own in args]), np.array([own.device_duration_ps for own in args]),
            np.array([_bytes_of(own) for own in args]), np.array([own.model_flops for own in args]),
            np.array([own.wait_ps for own in args]),
        ))  # fmt: skip
        self.whole.append((_whole([own.run_id for own in args]), _whole([own.step_num for own in args])))

    def _kind_of(self, event: _Event) -> int:
        args = event.args
        latest = self.latest.get(event.name)
        if latest is not None and _same_words(args, latest[1]):
            return latest[0]
        words = (args.long_name, args.hlo_category, args.tf_op, args.shape_with_layout, args.hlo_op)
        long_name, category, tf_op, shape, hlo_op = (bytes(word) for word in words)
        code = self.kinds.setdefault((event.name, long_name, category, tf_op, shape, hlo_op), len(self.kinds))
        own = _Args(
            long_name=args.long_name.copy(), hlo_category=args.hlo_category.copy(), tf_op=args.tf_op.copy(),
            shape_with_layout=args.shape_with_layout.copy(), hlo_op=args.hlo_op.copy(),
        )  # fmt: skip
        self.latest[event.name] = code, own
        return code

    def _set_aside(self, event: _Event) -> None:
        """What says something of a process, and what is no event with a duration."""
        if event.ph == "M":
            if event.name == "process_name":
                self.process_names[event.pid] = _word(event.args.name)
            elif event.name == "thread_name":
                self.thread_names[event.pid, event.tid] = _word(event.args.name)
        elif event.ph == "X":
            self.left_out["have no time or duration"] += 1
        elif event.ph or event.name:  # XLA's profiler ends the list with {}
            self.left_out[f"are of phase {event.ph[:8]!r}, which spans no time of itself"] += 1

    def read(self, about: Known) -> TraceEvents:
        return TraceEvents(
            kinds=tuple(Kind(key[0], *map(_text, key[1:])) for key in self.kinds),
            kind=np.concatenate(self.kind),
            threads=tuple(self.threads),
            thread=np.concatenate(self.thread),
            numbers={name: np.concatenate([part[at] for part in self.numbers]) for at, name in enumerate(NUMBERS)},
            whole={name: np.concatenate([part[at] for part in self.whole]) for at, name in enumerate(WHOLE)},
            process_names=self.process_names,
            thread_names=self.thread_names,
            about=about,
            notes=tuple(f"{count} events of the trace {what}: left out" for what, count in self.left_out.items()),
        )


def _same_words(args: _Args, other: _Args) -> bool:
    return (
        args.long_name == other.long_name
        and args.hlo_category == other.hlo_category
        and args.tf_op == other.tf_op
        and args.shape_with_layout == other.shape_with_layout
        and args.hlo_op == other.hlo_op
    )


def _bytes_of(args: _Args) -> float:
    known = args.bytes_accessed
    return known if known == known else args.raw_bytes_accessed


def _whole(values: list[int]) -> Ints:
    try:
        return np.array(values, np.int64)
    except OverflowError:  # 64 bits without a sign: the bits
        return np.array([value % 2**64 for value in values], np.uint64).view(np.int64)


def _word(raw: msgspec.Raw) -> str:
    return _text(bytes(raw))


def _text(raw: bytes) -> str:
    """A JSON string as text; of anything else what stands there."""
    if not raw:
        return ""
    value = msgspec.json.decode(raw)
    return value if isinstance(value, str) else raw.decode(errors="replace")


def read_events(file: BinaryIO) -> TraceEvents:
    """Every event of a trace.  `TimingError` where it is no JSON, no trace, or cut."""
    columns = _Columns()
    try:
        source = _Source(file)
        for events in source.lists(columns.left_out):
            columns.add(events)
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

    def lists(self, odd: Counter[str]) -> Iterator[list[_Event]]:
        rest = self._head()
        while True:
            more = self._file.read(_PIECE)
            rest += more
            if not more:
                yield self._last(rest, odd)
                return
            events, size = _first_events(rest, odd)
            if events is None and len(rest) > _LONGEST:
                raise TimingError("no JSON of a trace: an event in it does not end")
            if events is not None:
                yield events
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
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TimingError(f"no JSON of a trace: {error}") from None
        if isinstance(found, dict):
            self.about |= found

    def _last(self, rest: bytes, odd: Counter[str]) -> list[_Event]:
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
                events = _decode(b"[" + rest[:end].rstrip().removesuffix(b",") + b"]", odd)
            except (TimingError, msgspec.DecodeError):
                continue
            return events
        raise TimingError("the JSON is cut, or damaged: its list of events does not end")


def _first_events(text: bytes, odd: Counter[str]) -> tuple[list[_Event] | None, int]:
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
            return _decode(b"[" + text[: match.start() + 1] + b"]", odd), at
        except (msgspec.DecodeError, RecursionError):
            continue
    return None, 0


def _decode(text: bytes, odd: Counter[str]) -> list[_Event]:
    try:
        return _TYPED.decode(text)
    except msgspec.ValidationError:
        return list(_readable(_UNTYPED.decode(text), odd))


def _readable(values: list[object], odd: Counter[str]) -> Iterator[_Event]:
    """Those that are events; the others are counted by what is wrong with them."""
    for value in values:
        try:
            text = msgspec.json.encode(value)
            yield msgspec.json.decode(text, type=_Event, strict=False)
        except msgspec.ValidationError as error:
            odd[f"cannot be read ({error})"] += 1


def open_trace(file: BinaryIO) -> BinaryIO:
    """The file, unpacked where it is gzipped."""
    magic = file.read(2)
    file.seek(0)
    return GzipFile(fileobj=file) if magic == b"\x1f\x8b" else file  # type: ignore[return-value]
