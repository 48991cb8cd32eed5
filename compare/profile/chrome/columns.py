"""The events of a Chrome trace as columns."""

import math
from collections import Counter
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.profile.chrome.events import NOTHING, Args, Event, Events, Known, Trace
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
    source: str = ""
    source_stack: str = ""
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


def read_events(data: bytes | bytearray) -> TraceEvents:
    """Every event of a trace.  `TimingError` where it is no JSON, no trace, or cut."""
    columns = Columns(Trace(data))
    if not columns.count:
        raise TimingError("the trace is empty: no event in it has a duration")
    return columns.join()


class Columns:
    """The columns of a trace's events, batch by batch."""

    def __init__(self, trace: Trace):
        self.count = 0
        self._trace = trace
        self._odd = Counter[str]()
        self._kinds: dict[Kind, int] = {}
        self._by_line: dict[str, tuple[msgspec.Raw, int]] = {}
        """Of each name the line of HLO that was read last, and its kind."""
        self._by_name: dict[str, int] = {}
        """Of each name without HLO the kind."""
        self._threads: dict[tuple[int, int], int] = {}
        self._pieces: list[tuple[NDArray[np.float64 | np.int64 | np.int32], ...]] = []
        """Columns of each batch: kind, thread, those of NUMBERS, those of WHOLE."""
        self._process_names: dict[int, str] = {}
        self._thread_names: dict[tuple[int, int], str] = {}
        self._names = 0
        """Events that name a process or a thread."""
        for batch in trace.batches():
            self._add([each for each in batch if self._is_timed(*each)])

    def _add(self, batch: Events) -> None:
        self.count += len(batch)
        if self.count > MOST_EVENTS:
            raise TimingError(f"the trace has more than {MOST_EVENTS:,} events, which are the most that are read")
        if not batch:
            return
        events, args = [event for event, _ in batch], [row for _, row in batch]
        self._pieces.append(
            (
                self._kinds_of(batch),
                self._threads_of(events),
                _floats([event.ts for event in events]),
                _floats([event.dur for event in events]),
                _floats([row.device_offset_ps for row in args]),
                _floats([row.device_duration_ps for row in args]),
                _floats([row.wait_ps for row in args]),
                _whole([row.run_id for row in args]),
                _whole([row.step_num for row in args]),
            )
        )

    def _kinds_of(self, batch: Events) -> NDArray[np.int32]:
        by_line, by_name, nothing = self._by_line, self._by_name, NOTHING
        kinds: list[int] = []
        for event, row in batch:
            line, name = row.long_name, event.name
            if line is not nothing:
                latest = by_line.get(name)
                if latest is None or latest[0] != line:
                    latest = by_line[name] = line, self._code(self._kind(event))
                kinds.append(latest[1])
            elif row.hlo_category is not nothing:
                kinds.append(self._code(self._kind(event)))
            else:
                known = by_name.get(name)
                if known is None:
                    known = by_name[name] = self._code(Kind(name))
                kinds.append(known)
        return np.array(kinds, np.int32)

    def _threads_of(self, events: list[Event]) -> NDArray[np.int32]:
        """Events of one thread mostly follow each other."""
        process, thread = _whole([event.pid for event in events]), _whole([event.tid for event in events])
        begins = np.flatnonzero(np.append(True, (np.diff(process) != 0) | (np.diff(thread) != 0))[: len(events)])
        keys = zip(process[begins].tolist(), thread[begins].tolist(), strict=True)
        codes = [self._threads.setdefault(key, len(self._threads)) for key in keys]
        return np.repeat(np.array(codes, np.int32), np.diff(np.append(begins, len(events))))

    def _is_timed(self, event: Event, args: Args) -> bool:
        if event.ph == "X" and 0 <= event.dur < MOST_US and abs(event.ts) < MOST_US:
            return True
        self._set_aside(event, args)
        return False

    def _kind(self, event: Event) -> Kind:
        facts = self._trace.read_facts(event)
        long_name, category, tf_op = _text(facts.long_name), _text(facts.hlo_category), _text(facts.tf_op)
        shape, hlo_op = _text(facts.shape_with_layout), _text(facts.hlo_op)
        accessed = facts.bytes_accessed if facts.bytes_accessed == facts.bytes_accessed else facts.raw_bytes_accessed
        frames = _text(facts.source), _text(facts.source_stack)
        return Kind(event.name, long_name, category, tf_op, shape, hlo_op, *frames, accessed, facts.model_flops)

    def _code(self, kind: Kind) -> int:
        return self._kinds.setdefault(kind, len(self._kinds))

    def _set_aside(self, event: Event, args: Args) -> None:
        """Read the names of processes and threads; count what has no duration."""
        if event.ph == "M":
            self._names += 1
            if self._names > MOST_NAMES:
                raise TimingError(f"the trace names more than {MOST_NAMES:,} processes and threads")
            if event.name == "process_name":
                self._process_names[event.pid] = _text(args.name)
            elif event.name == "thread_name":
                self._thread_names[event.pid, event.tid] = _text(args.name)
        elif event.ph == "X":
            self._odd["have no time or duration: left out"] += 1
        elif event.ph or event.name:  # XLA's profiler ends the list with {}
            self._odd[f"are of phase {event.ph[:8]!r}, which has no duration of its own: left out"] += 1

    def join(self) -> TraceEvents:
        """All batches, one behind the other."""
        joined = [np.concatenate(parts) for parts in zip(*self._pieces, strict=True)]
        odd = self._trace.odd + self._odd
        return TraceEvents(
            kinds=tuple(self._kinds),
            kind=joined[0].astype(np.int32),
            threads=tuple(self._threads),
            thread=joined[1].astype(np.int32),
            numbers=dict(zip(NUMBERS, joined[2:7], strict=True)),
            whole=dict(zip(WHOLE, joined[7:], strict=True)),
            process_names=self._process_names,
            thread_names=self._thread_names,
            about=self._trace.about,
            notes=tuple(f"{count} events of the trace {what}" for what, count in odd.items()),
        )


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
