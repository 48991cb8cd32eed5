"""The events of a Chrome trace as columns."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.profile.chrome.pieces import NOTHING, Args, Event, EventList, Facts, Known, TraceText
from compare.timeline.arrays import Floats, Ints
from compare.timeline.errors import TimingError

MOST_EVENTS = 1 << 22
"""Of one trace, as of one `xplane.pb`."""
MOST_NAMES = 1 << 20
"""Events that name a process or a thread, of one trace."""
MOST_US = 2**63 / 1e3
"""Of a time or duration: nanoseconds have 64 bits."""


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


@dataclass(kw_only=True)
class Columns:
    """The columns of the events read so far."""

    about: Known = field(default_factory=dict)
    """The keys beside `traceEvents`."""
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
    odd: Counter[str] = field(default_factory=Counter)
    count: int = 0
    names: int = 0
    """Events that name a process or a thread."""

    def add_all(self, text: TraceText, *, end_near: int | None = None) -> None:
        """All that is left of a trace, or what stands before an event soon behind an offset."""
        for piece in text.pieces(self.odd, end_near=end_near):
            self._add(piece)
        self.about |= text.about

    def extend(self, others: "Columns") -> None:
        """Those of the rest of the same trace."""
        kinds = np.array([self._code(kind) for kind in others.kinds], np.int32)
        threads = np.array([self.threads.setdefault(key, len(self.threads)) for key in others.threads], np.int32)
        self._count(others.count)
        self.pieces += [(kinds[kind], threads[thread], *rest) for kind, thread, *rest in others.pieces]
        self.process_names |= others.process_names
        self.thread_names |= others.thread_names
        self.odd += others.odd
        self.about |= others.about

    def pack(self) -> "Columns":
        """The same for another process, in one piece, without what only reading needs."""
        pieces = [tuple(np.concatenate(parts) for parts in zip(*self.pieces, strict=True))] if self.pieces else []
        return replace(self, by_line={}, by_name={}, pieces=pieces)

    def _add(self, piece: EventList) -> None:
        events, places = piece.events, None
        starts, lengths = _floats([event.ts for event in events]), _floats([event.dur for event in events])
        is_timed = (lengths >= 0) & (np.maximum(np.abs(starts), lengths) < MOST_US)
        if {event.ph for event in events} != {"X"} or not is_timed.all():
            places = [place for place, event in enumerate(events) if self._is_timed(event)]
            events = [events[place] for place in places]
            starts, lengths = starts[places], lengths[places]
        self._count(len(events))
        args = [event.args for event in events]
        self.pieces.append((
            self._kinds_of(piece, events, args, places), self._threads_of(events), starts, lengths,
            _floats([row.device_offset_ps for row in args]),
            _floats([row.device_duration_ps for row in args]),
            _floats([row.wait_ps for row in args]),
            _whole([row.run_id for row in args]),
            _whole([row.step_num for row in args]),
        ))  # fmt: skip

    def _count(self, more: int) -> None:
        self.count += more
        if self.count > MOST_EVENTS:
            raise TimingError(f"the trace has more than {MOST_EVENTS:,} events, which are the most that are read")

    def _kinds_of(
        self, piece: EventList, events: list[Event], args: list[Args], places: list[int] | None
    ) -> NDArray[np.int32]:
        by_line, by_name, nothing = self.by_line, self.by_name, NOTHING
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

    def _threads_of(self, events: list[Event]) -> NDArray[np.int32]:
        """Events of one thread mostly follow each other."""
        if len({event.tid for event in events}) == len({event.pid for event in events}) == 1:
            key = events[0].pid, events[0].tid
            return np.full(len(events), self.threads.setdefault(key, len(self.threads)), np.int32)
        process, thread = _whole([event.pid for event in events]), _whole([event.tid for event in events])
        begins = np.flatnonzero(np.append(True, (np.diff(process) != 0) | (np.diff(thread) != 0))[: len(events)])
        keys = zip(process[begins].tolist(), thread[begins].tolist(), strict=True)
        codes = [self.threads.setdefault(key, len(self.threads)) for key in keys]
        return np.repeat(np.array(codes, np.int32), np.diff(np.append(begins, len(events))))

    def _is_timed(self, event: Event) -> bool:
        if event.ph == "X" and 0 <= event.dur < MOST_US and abs(event.ts) < MOST_US:
            return True
        self._set_aside(event)
        return False

    def _code(self, kind: Kind) -> int:
        return self.kinds.setdefault(kind, len(self.kinds))

    def _set_aside(self, event: Event) -> None:
        """Read the names of processes and threads; count what has no duration."""
        if event.ph == "M":
            self.names += 1
            if self.names > MOST_NAMES:
                raise TimingError(f"the trace names more than {MOST_NAMES:,} processes and threads")
            if event.name == "process_name":
                self.process_names[event.pid] = _text(event.args.name)
            elif event.name == "thread_name":
                self.thread_names[event.pid, event.tid] = _text(event.args.name)
        elif event.ph == "X":
            self.odd["have no time or duration: left out"] += 1
        elif event.ph or event.name:  # XLA's profiler ends the list with {}
            self.odd[f"are of phase {event.ph[:8]!r}, which has no duration of its own: left out"] += 1

    def read(self) -> TraceEvents:
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
            about=self.about,
            notes=tuple(f"{count} events of the trace {what}" for what, count in self.odd.items()),
        )


def _kind(name: str, facts: Facts) -> Kind:
    long_name, category, tf_op = _text(facts.long_name), _text(facts.hlo_category), _text(facts.tf_op)
    shape, hlo_op = _text(facts.shape_with_layout), _text(facts.hlo_op)
    accessed = facts.bytes_accessed if facts.bytes_accessed == facts.bytes_accessed else facts.raw_bytes_accessed
    return Kind(name, long_name, category, tf_op, shape, hlo_op, accessed, facts.model_flops)


def _floats(values: list[float]) -> Floats:
    return np.fromiter(values, np.float64, len(values))  # twice as fast as np.array, which reads the list twice


def _whole(values: list[int]) -> Ints:
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:  # 64 bits without a sign: the bits
        return np.array([value % 2**64 for value in values], np.uint64).view(np.int64)


def _text(raw: msgspec.Raw) -> str:
    """A JSON string as text; of anything else what stands there."""
    data = bytes(raw)
    if not data:
        return ""
    value = msgspec.json.decode(data)
    return value if isinstance(value, str) else data.decode(errors="replace")
