"""The threads of a host with CPU devices: arrivals at a rendezvous, the ends of operations, annotated steps.

The threads are concatenated on one time axis, so that enclosing events are found by binary search.

Events of a thread nest or follow each other, as calls do.  A task that one thread hands to another shows as
`ThreadpoolListener::Record` where it is handed over, and as `StartRegion` and `StopRegion` where it runs, with the
same number in both (openxla/xla, xla/tsl/profiler/backends/cpu/threadpool_listener.cc).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.profile.xplane.device_events import concat_words, words_by_code
from compare.profile.xplane.xspace import Line
from compare.timeline.arrays import Floats, Ints, Mask
from compare.timeline.columns import STEP_COLUMNS
from compare.timeline.errors import TimingError

NONE = np.iinfo(np.int64).min
"""The value of a missing number."""
LAST = np.iinfo(np.int64).max
START, STOP = "ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion"

_PS = 1000
_DAY_NS = 86_400 * 1e9


class Threads:
    """All events of some lines as columns, by thread and start; of equal starts the longer first.

    `TimingError` where the times are too far apart.
    """

    def __init__(self, lines: Sequence[Line], zero_ns: int):
        self.lines = tuple(lines)
        starts = [line.start_ns(zero_ns) for line in lines]
        self.thread: Ints = np.repeat(np.arange(len(lines)), [line_starts.size for line_starts in starts])
        start, length = _whole_ps(starts, [line.duration_ns for line in lines])
        self._order = _order(self.thread, start, length)
        start, length = start[self._order], length[self._order]
        self._first = int(start.min(initial=0))
        self._stretch = int((start + length).max(initial=0)) - self._first + 1
        self.begins = start + self.shift(self.thread)
        """The position of each event's start on the axis, in ps."""
        self.ends = self.begins + length

    def __len__(self) -> int:
        return self.thread.size

    def shift(self, thread: Ints) -> Ints:
        """The offset from a thread's time to its position on the axis."""
        return thread * self._stretch - self._first

    def time(self, positions: Ints) -> Ints:
        """The time, in ps, of positions on the axis; LAST stays LAST."""
        return np.where(positions == LAST, LAST, (positions % self._stretch) + self._first)

    @cached_property
    def names(self) -> pd.Categorical:
        return self._categorical([line.names for line in self.lines])

    def events_named(self, pattern: str) -> Ints:
        """The events whose full name matches, in order."""
        wanted = np.array([re.fullmatch(pattern, word) is not None for word in self.names.categories], np.bool_)
        return np.flatnonzero(np.append(wanted, False)[self.names.codes])

    def numbers(self, stat: str) -> Ints:
        """An integer statistic; NONE where an event lacks it."""
        return _joined([line.numbers(stat, missing=NONE) for line in self.lines])[self._order]

    def words(self, stat: str) -> pd.Categorical:
        """A string statistic; "" where an event lacks it."""
        return self._categorical([line.words(stat) for line in self.lines])

    def _categorical(self, parts: Sequence[pd.Categorical]) -> pd.Categorical:
        words = concat_words(parts)
        return words_by_code(np.asarray(words.codes)[self._order], list(words.categories))

    @cached_property
    def given_context(self) -> Ints:
        """The context id that an event creates for events on any thread."""
        return self.numbers("_p")

    @cached_property
    def own_context(self) -> Ints:
        """The context id that an event belongs to."""
        return self.numbers("_c")

    @cached_property
    def regions(self) -> "Regions":
        """The tasks that were handed over, where they run."""
        marks = self.events_named(f"{START}|{STOP}")
        starting = np.isin(marks, self.events_named(START))
        closes = _closings(self.thread[marks], starting)
        starts = marks[starting]
        ends = np.where(closes >= 0, self.begins[marks[closes]], (self.thread[starts] + 1) * self._stretch)
        return Regions(self.begins[starts], ends, self.own_context[starts])


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals on the axis, by begin, that nest or follow each other."""

    begins: Ints
    ends: Ints
    outer: Ints
    """The innermost interval around each; -1 for none."""

    @classmethod
    def of(cls, begins: Ints, ends: Ints) -> Self:
        outer = np.full(begins.size, -1, np.int64)
        if (ends[:-1] > begins[1:]).any():
            enclosing: list[int] = []
            limits = ends.tolist()
            for span, begin in enumerate(begins.tolist()):
                while enclosing and limits[enclosing[-1]] <= begin:
                    enclosing.pop()
                outer[span] = enclosing[-1] if enclosing else -1
                enclosing.append(span)
        return cls(begins, ends, outer)

    def innermost(self, positions: Ints) -> Ints:
        """The innermost interval around each position (ends are exclusive); -1 for none."""
        span = np.searchsorted(self.begins, positions, side="right") - 1
        while (over := (span >= 0) & (np.append(self.ends, LAST)[span] <= positions)).any():
            span[over] = self.outer[span[over]]
        return span


@dataclass(frozen=True, slots=True)
class Regions:
    """Tasks: where each runs, and the context id of its hand-over."""

    begins: Ints
    ends: Ints
    context: Ints


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _whole_ps(starts: Sequence[Floats], lengths: Sequence[Floats]) -> tuple[Ints, Ints]:
    start, length = np.concatenate([np.empty(0), *starts]), np.concatenate([np.empty(0), *lengths])
    apart = (start + length).max(initial=0) - start.min(initial=0)
    if apart * _PS * max(len(starts), 1) > LAST // 2:
        raise TimingError(f"events of the host lie {apart / _DAY_NS:.0f} days apart: a time in the profile is damaged")
    return np.rint(start * _PS).astype(np.int64), np.rint(length * _PS).astype(np.int64)


def _order(thread: Ints, start: Ints, length: Ints) -> NDArray[np.intp]:
    """Order by thread, start, longer first; most files are in this order already."""
    same = thread[1:] == thread[:-1]
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (length[1:] <= length[:-1]))
    if (later | ~same).all():
        return np.arange(thread.size)
    return np.lexsort((-length, start, thread))


def _closings(thread: Ints, starting: Mask) -> Ints:
    """For each start the matching stop, among marks of starts and stops; -1 where the profile ends before it."""
    closes = np.full(starting.size, -1, np.int64)
    follows = np.append((thread[1:] == thread[:-1]) & ~starting[1:], False)
    plain = np.flatnonzero(starting & follows)
    closes[plain] = plain + 1
    # The rest are nested regions, and those cut by the end of the profile.
    done = np.zeros(starting.size, np.bool_)
    done[plain] = done[plain + 1] = True
    open_: list[int] = []
    for mark in np.flatnonzero(~done).tolist():
        if open_ and thread[open_[-1]] != thread[mark]:
            open_.clear()
        if starting[mark]:
            open_.append(mark)
        elif open_:
            closes[open_.pop()] = mark
    return closes[starting]


_MEETS = r"Rendezvous|RendezvousSingle"


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Every arrival at a rendezvous.

    A collective of XLA:CPU begins with a rendezvous of its group: each participant arrives, waits until the last one
    has, and only then moves data, each its own share; so `InProcessCommunicator::AllReduce` and the others in
    openxla/xla, xla/backends/cpu/collectives/in_process_communicator.cc, and `Rendezvous` in xla/service/rendezvous.h.
    The event `Rendezvous` begins when a participant arrives.  It has its number in the order of arrival (`id`), the
    number of participants (`num_threads`) and the key of the group (`name`); rounds of one key follow each other.

    The wait is from a device's own arrival to the last one's.  `Wait: pending_threads=1/4` lasts longer, until the
    waiting thread wakes up; the others do not cause that, and it counts as transfer.
    """

    event: Ints
    wait_ns: Floats
    """Time until the last arrival; NaN where the profile does not show it."""


def find_arrivals(threads: Threads) -> Arrivals:
    """The arrivals, by thread and time.

    A round completes with the next arrival of the last number under its key.  A thread may be suspended between taking
    its number and the start of its event: then the last has arrived already, and it does not wait.
    """
    events = threads.events_named(_MEETS)
    keys = threads.words("name")[events]
    begins, ends = threads.time(threads.begins[events]), threads.time(threads.ends[events])
    order = np.lexsort((begins, keys.codes))
    positions = np.arange(events.size)
    last = (threads.numbers("id")[events] == threads.numbers("num_threads")[events] - 1)[order]
    after = np.minimum.accumulate(np.where(last, positions, events.size)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(last, positions, -1))
    key, begins, ends = np.asarray(keys.codes, np.int64)[order], begins[order], ends[order]
    completes_later = (np.append(key, -1)[after] == key) & (np.append(begins, LAST)[after] <= ends)
    is_late = (before >= 0) & (key[before] == key) & (ends[before] >= begins)
    waits = np.where(completes_later, np.append(begins, 0)[after] - begins, np.where(is_late, 0, np.nan)) / 1e3
    return Arrivals(event=events, wait_ns=waits[np.argsort(order)])


_END = r"end: .*"


@dataclass(frozen=True, slots=True)
class Ends:
    at_ps: Ints
    """When each operation ends."""
    resumed_ps: Ints
    """When another thread resumed it; for an operation that ends with its call, that end."""
    unseen: int
    """Number of operations without an end in the profile: they end with their call."""


def find_ends(threads: Threads, ops: Ints, completed_ps: Ints) -> Ends:
    """When each of these operations ends, in order.  completed_ps: when their runs completed.

    An operation's event covers its call.  If the call leaves work to other threads, the operation ends later: then
    `end: NAME`, with the context id that the operation created, is on the thread that completes it.  But the
    continuation of the program is called before that event, on the same thread: so the operation ends where the first
    operation after it begins in the task that has its end.  It resumes when that task begins: before, it waited for the
    thread, which on a machine with few cores can be most of its time.  It ends before its device has completed its run.
    (openxla/xla, xla/backends/cpu/runtime/thunk_executor.cc, `TracedExecute` and `ResumeExecuteSequential`;
    tsl::AsyncValue calls the last waiter first.)
    """
    called = threads.time(threads.ends[ops])
    given = threads.given_context[ops]
    marks = threads.events_named(_END)
    order = np.argsort(given, kind="stable")
    index = np.searchsorted(given[order], threads.own_context[marks])
    known = (np.append(given[order], LAST)[index] == threads.own_context[marks]) & (threads.own_context[marks] != NONE)
    marks, op = marks[known], order[index[known]]
    unseen = ops.size - np.unique(op).size
    is_later = threads.time(threads.begins[marks]) > called[op]
    finished, resumed = called.copy(), called.copy()
    op, marks = op[is_later], marks[is_later]
    spans = Spans.of(threads.regions.begins, threads.regions.ends)
    finished[op] = np.minimum(_completed(threads, spans, ops, op, marks), completed_ps[op])
    finished = np.maximum(finished, called)
    region = spans.innermost(threads.begins[marks])
    taken_up = threads.time(np.append(spans.begins, 0)[region])
    resumed[op] = np.where(region >= 0, np.clip(taken_up, called[op], finished[op]), called[op])
    return Ends(finished, resumed, unseen)


def _completed(threads: Threads, spans: Spans, ops: Ints, op: Ints, mark: Ints) -> Ints:
    """Completion times of operations whose `end:` event is after their call."""
    begins = threads.begins[ops]
    region, call_region = spans.innermost(threads.begins[mark]), spans.innermost(begins[op])
    thread = threads.thread[mark]
    called = threads.time(begins[op]) + threads.shift(thread)  # as a position on the completing thread
    since = np.maximum(np.append(spans.begins, 0)[region], called)
    following = np.append(begins, LAST)[np.searchsorted(begins, since, side="right")]
    # An operation in another task than the one that ends this has nothing to do with it, though it ran on the same
    # thread.
    continues = (region >= 0) & (region != call_region) & (following < threads.begins[mark])
    return threads.time(np.where(continues, following, threads.begins[mark]))


_MOST = 0.5
"""Annotations in which less than this fraction of the operations is launched are not steps."""


def find_marks(threads: Threads) -> pd.DataFrame:
    """The steps of the most frequent annotation name: columns step, begin, end in ps, in order.

    Concurrent annotations of one number on several threads are one step.  If a number recurs, steps are renumbered.
    """
    number = threads.numbers("step_num")
    events = np.flatnonzero((number != NONE) & (threads.ends > threads.begins))
    rows = pd.DataFrame(
        {
            "word": np.asarray(threads.names[events]).astype(object),
            "step": number[events],
            "begin": threads.time(threads.begins[events]),
            "end": threads.time(threads.ends[events]),
        }
    )
    sizes = (
        rows.assign(long=rows["end"] - rows["begin"]).groupby("word").agg(num=("step", "size"), long=("long", "sum"))
    )
    words = sizes.sort_values(["num", "long"]).index
    marks = rows[rows["word"].isin(words[-1:])].sort_values(["step", "begin"], ignore_index=True)
    reached = marks.groupby("step")["end"].cummax().shift(fill_value=0)
    apart = marks["step"].diff().ne(0) | (marks["begin"] >= reached)
    merged = marks.groupby(apart.cumsum()).agg({"step": "first", "begin": "min", "end": "max"}).sort_values("begin")
    if merged["step"].duplicated().any():
        merged["step"] = np.arange(len(merged))
    return pd.DataFrame(merged.reset_index(drop=True))


def steps_of(marks: pd.DataFrame, events: pd.DataFrame, launched: Ints) -> pd.DataFrame | None:
    """Columns of STEP_COLUMNS; `None` where too few operations were launched within the marks.

    An annotation (`jax.profiler.StepTraceAnnotation`, torch_xla's `TraceMe` with `step_num`) encloses the launches of a
    step; the devices may run it later.  So a run belongs to the step in which it was launched; a device's step ends
    with its last operation or the annotation, whichever is later, and begins with the previous step's end or the
    annotation.

    events: device, start_ns, duration_ns of operations.  launched: launch time of each, in ps.
    """
    begin, end = marks["begin"].to_numpy(), marks["end"].to_numpy()
    step = np.searchsorted(begin, launched, side="right") - 1
    inside = (step >= 0) & (launched < np.append(end, 0)[step])
    if not len(marks) or inside.mean() < _MOST:
        return None
    devices, row = np.unique(events["device"].to_numpy(), return_inverse=True)
    done = (events["start_ns"] + events["duration_ns"]).to_numpy()
    until = np.tile(end / 1e3, (devices.size, 1))
    np.maximum.at(until, (row[inside], step[inside]), done[inside])
    until = np.maximum.accumulate(until, axis=1)
    since = np.maximum(begin / 1e3, np.pad(until[:, :-1], ((0, 0), (1, 0)), constant_values=-np.inf))
    frame = {
        "device": np.repeat(devices, len(marks)),
        "step": np.tile(marks["step"].to_numpy(), devices.size),
        "start_ns": since.ravel(),
        "duration_ns": (until - since).ravel(),
    }
    return pd.DataFrame(frame).astype(STEP_COLUMNS)
