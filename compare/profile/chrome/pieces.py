"""The text of a Chrome trace in pieces: lists of events, of which few strings become objects.

The format is "Trace Event Format" (Google, 2016): `{"traceEvents": [{"ph": "X", "ts": …, "dur": …, "args": {…}}, …]}`,
or the list alone; times in µs.  What XLA's profiler writes in `args` stands in openxla/xprof's
`xprof/convert/trace_viewer/trace_events_to_json.h`: numbers of 64 bits are strings.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import msgspec
from isal.igzip import IGzipFile
from isal.igzip_lib import IsalError

from compare.timeline.errors import TimingError

UNPACKING_ERRORS: tuple[type[Exception], ...] = (EOFError, OSError, IsalError)  # type: ignore[assignment]
"""Of a gzip file that is cut or damaged; `OSError` with a number is the file system's."""
_PIECE = 1 << 18
_LONGEST = 64 << 20
"""Of what stands before the events, behind them, or of one event."""
_BLANKS = 4 << 20
"""Of blanks in a row: a thousandth of them, packed, would be read for a minute."""
_TRIES = 8
"""Places at which a piece may end; in a string or a nested list all but the last few look like the end of an event."""
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*$")
_NEXT = re.compile(rb"\}\s*,\s*\{")
_WINDOW = 1 << 20
NOTHING = msgspec.Raw(b"")
NO_NUMBER = -1
Known = dict[str, object]


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


_NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    args: Args = _NO_ARGS
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
    bytes_accessed: float = math.nan
    raw_bytes_accessed: float = math.nan
    model_flops: float = math.nan


class _EventFacts(msgspec.Struct, gc=False):
    args: Facts = Facts()


_EVENTS_OF = msgspec.json.Decoder(list[Event], strict=False)
_FACTS_OF = msgspec.json.Decoder(list[_EventFacts], strict=False)
_TEXTS_OF = msgspec.json.Decoder(list[msgspec.Raw])
_ANYTHING_OF = msgspec.json.Decoder(list[object])


class EventList:
    """A JSON list of events: read for what differs from event to event, and again for what is new in it."""

    def __init__(self, text: bytes, odd: Counter[str]):
        self._text = text
        try:
            self.events: list[Event] = _EVENTS_OF.decode(text)
        except msgspec.ValidationError:
            self._text = _readable(_ANYTHING_OF.decode(text), odd)
            self.events = _EVENTS_OF.decode(self._text)
        self._odd = odd
        self._facts: list[_EventFacts] | None = None

    def facts(self, place: int) -> Facts:
        if self._facts is None:
            try:
                self._facts = _FACTS_OF.decode(self._text)
            except msgspec.ValidationError:
                self._facts = [self._read_facts(event) for event in _TEXTS_OF.decode(self._text)]
        return self._facts[place].args

    def _read_facts(self, event: msgspec.Raw) -> _EventFacts:
        try:
            return msgspec.json.decode(event, type=_EventFacts, strict=False)
        except msgspec.ValidationError as error:
            self._odd[f"say of their operation what cannot be read ({error}): read without it"] += 1
            return _EventFacts()


class TraceText:
    """A file, event by event, in pieces that are JSON lists."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._rest = b""
        """What was read and given in no piece."""
        self.about: Known = {}
        """The keys beside `traceEvents`."""
        self._blanks = 0
        """How many stand before what is read next."""
        self.is_list = False
        self.is_read = False
        """Whether the last piece was given."""

    def read_head(self) -> None:
        """Up to the list of events."""
        self._rest = self._head()

    def start_near(self, offset: int, *, is_list: bool) -> bool:
        """Begin in the middle of the list, at the event that `pieces(end_near=offset)` ends before; whether one is."""
        self._skip(offset)
        self.is_list = is_list
        window = self._file.read(_WINDOW)
        at = _find_event(window)
        self._rest = window[at or 0 :]
        return at is not None

    def _skip(self, offset: int) -> None:
        if not isinstance(self._file, IGzipFile):
            self._file.seek(offset)
        while (left := offset - self._file.tell()) > 0 and self._file.read(min(_PIECE, left)):
            pass

    def pieces(self, odd: Counter[str], *, end_near: int | None = None) -> Iterator[EventList]:
        """Up to the end of the trace, or to an event that begins soon behind the offset `end_near`, if one is found.

        odd: what is no event is counted here, by what is wrong with it.
        """
        while True:
            left = None if end_near is None else end_near - self._file.tell()
            if end_near is not None and left is not None and left < _PIECE:
                if left < 0:
                    end_near = None
                    continue
                window = self._read_window(left)
                at, end_near = _find_event(window), None
                if at is not None and (last := self._end_at(len(self._rest) - len(window) + at, odd)):
                    yield last
                    return
            more = self._read()
            self._rest += more
            if not more:
                yield self._last(self._rest, odd)
                self.is_read = True
                return
            piece, size = _first_events(self._rest, odd)
            if piece is None and len(self._rest) > _LONGEST:
                raise TimingError("no JSON of a trace: an event in it does not end")
            if piece is not None:
                yield piece
                self._rest = self._rest[size:]

    def _read(self) -> bytes:
        piece = self._file.read(_PIECE)
        self._blanks = self._blanks + len(piece) if piece.isspace() else 0
        if self._blanks > _BLANKS:
            raise TimingError(f"no JSON of a trace: more than {_BLANKS:,} blanks stand in a row")
        return piece

    def _read_window(self, left: int) -> bytes:
        """Read what is left up to an offset, and the window behind it, which is returned."""
        self._rest += self._file.read(left)
        window = self._file.read(_WINDOW)
        self._rest += window
        return window

    def _end_at(self, end: int, odd: Counter[str]) -> EventList | None:
        """The events before a place in the rest; None where no event ends there, and the rest is as it was."""
        try:
            events = EventList(b"[" + self._rest[:end].rstrip().removesuffix(b",") + b"]", odd)
        except (msgspec.DecodeError, RecursionError):
            return None
        self._rest = self._rest[end:]
        return events

    def _head(self) -> bytes:
        """Up to the list of events; what comes of it is the beginning of that list."""
        head = b""
        while len(head) <= _LONGEST:
            more = self._read()
            head += more
            start = head.lstrip()
            if start[:1] == b"[":
                self.is_list = True
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
                except (msgspec.DecodeError, RecursionError) as error:
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

    def _last(self, rest: bytes, odd: Counter[str]) -> EventList:
        """What is left, without what closes the trace."""
        end = len(rest)
        for _ in range(1000):
            end = rest.rfind(b"]", 0, end)
            if end < 0:
                break
            behind = rest[end + 1 :].strip()
            try:
                if self.is_list and behind:
                    raise TimingError("no JSON of a trace: something stands behind the list of events")
                if not self.is_list:
                    self._learn(b"{" + behind.removeprefix(b","))
                return EventList(b"[" + rest[:end].rstrip().removesuffix(b",") + b"]", odd)
            except (TimingError, msgspec.DecodeError, RecursionError):
                continue
        raise TimingError("the JSON is cut, or damaged: its list of events does not end")


def _find_event(window: bytes) -> int | None:
    """Where an event seems to begin: in a word or in a list inside an event it may seem so, too."""
    for match in islice(_NEXT.finditer(window), _TRIES):
        at = match.end() - 1
        if _first_events(window[at:], Counter())[0] is not None:
            return at
    return None


def _first_events(text: bytes, odd: Counter[str]) -> tuple[EventList | None, int]:
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
            return EventList(b"".join((b"[", memoryview(text)[: match.start() + 1], b"]")), odd), at
        except (msgspec.DecodeError, RecursionError):
            continue
    return None, 0


def _readable(values: list[object], odd: Counter[str]) -> bytes:
    """The list without what is no event, which is counted by what is wrong with it."""
    kept = []
    for value in values:
        text = msgspec.json.encode(value)
        try:
            msgspec.json.decode(text, type=Event, strict=False)
        except msgspec.ValidationError as error:
            odd[f"cannot be read ({error}): left out"] += 1
        else:
            kept.append(text)
    return b"[" + b",".join(kept) + b"]"


def open_trace(file: BinaryIO) -> BinaryIO:
    """The file, unpacked where it is gzipped."""
    magic = file.read(2)
    file.seek(0)
    return IGzipFile(fileobj=file) if magic == b"\x1f\x8b" else file  # type: ignore[no-untyped-call,return-value]
