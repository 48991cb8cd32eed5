"""The threads of a host, concatenated on one time axis, so that enclosing events are found by binary search.

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
