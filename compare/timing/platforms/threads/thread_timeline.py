"""The threads of a host, laid end to end on one axis of time: then what encloses what is a search in sorted numbers.

Events of a thread nest or follow each other, as calls do.  A piece of work that one thread hands to another shows as
`ThreadpoolListener::Record` where it is handed over, and as `StartRegion` and `StopRegion` around it where it runs,
with one number in both (openxla/xla, xla/tsl/profiler/backends/cpu/threadpool_listener.cc).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timing.arrays import Floats, Ints, Mask
from compare.timing.errors import TimingError
from compare.timing.xplane.device_events import concat_words, words_by_code
from compare.timing.xplane.xspace import Line

NONE = np.iinfo(np.int64).min
"""Of a number that an event does not have."""
LAST = np.iinfo(np.int64).max
RECORD, START, STOP = (f"ThreadpoolListener::{word}" for word in ("Record", "StartRegion", "StopRegion"))

_PS = 1000
_DAY_NS = 86_400 * 1e9


class Threads:
    """Every event of some lines, by thread and start: a column each, and of equal starts the longer first.

    `TimingError` where their times make no sense together.
    """

    def __init__(self, lines: Sequence[Line], zero_ns: int):
        self.lines = tuple(lines)
        starts = [line.start_ns(zero_ns) for line in lines]
        self.thread: Ints = np.repeat(np.arange(len(lines)), [own.size for own in starts])
        start, length = _whole_ps(starts, [line.duration_ns for line in lines])
        self._order = _order(self.thread, start, length)
        start, length = start[self._order], length[self._order]
        self._first = int(start.min(initial=0))
        self._stretch = int((start + length).max(initial=0)) - self._first + 1
        self.begins = start + self.shift(self.thread)
        """Where each begins on the axis, in ps."""
        self.ends = self.begins + length

    def __len__(self) -> int:
        return self.thread.size

    def shift(self, thread: Ints) -> Ints:
        """What takes a time to its place on the axis."""
        return thread * self._stretch - self._first

    def time(self, at: Ints) -> Ints:
        """The time, in ps, of places on the axis; LAST stays."""
        return np.where(at == LAST, LAST, (at % self._stretch) + self._first)

    def thread_of(self, at: Ints) -> Ints:
        return at // self._stretch

    @cached_property
    def names(self) -> pd.Categorical:
        return self._categorical([line.names for line in self.lines])

    def events_named(self, pattern: str) -> Ints:
        """The events whose whole name is this, in order."""
        wanted = np.array([re.fullmatch(pattern, word) is not None for word in self.names.categories], np.bool_)
        return np.flatnonzero(np.append(wanted, False)[self.names.codes])

    def numbers(self, stat: str) -> Ints:
        """A statistic that is a whole number, NONE where an event has it not."""
        return _joined([line.numbers(stat, missing=NONE) for line in self.lines])[self._order]

    def words(self, stat: str) -> pd.Categorical:
        """A statistic that is a word, "" where an event has it not."""
        return self._categorical([line.words(stat) for line in self.lines])

    def _categorical(self, parts: Sequence[pd.Categorical]) -> pd.Categorical:
        words = concat_words(parts)
        return words_by_code(np.asarray(words.codes)[self._order], list(words.categories))

    @cached_property
    def given_context(self) -> Ints:
        """The context that an event makes, for others on any thread to bear."""
        return self.numbers("_p")

    @cached_property
    def own_context(self) -> Ints:
        """The context that an event bears."""
        return self.numbers("_c")

    @cached_property
    def regions(self) -> "Regions":
        """The pieces of work that were handed over, where they run."""
        marks = self.events_named(f"{START}|{STOP}")
        starting = np.isin(marks, self.events_named(START))
        closes = _closings(self.thread[marks], starting)
        own = marks[starting]
        ends = np.where(closes >= 0, self.begins[marks[closes]], (self.thread[own] + 1) * self._stretch)
        return Regions(self.begins[own], ends, self.own_context[own])


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals of the axis, by begin, that nest or follow each other."""

    begins: Ints
    ends: Ints
    outer: Ints
    """The next around each, -1 for none."""

    @classmethod
    def of(cls, begins: Ints, ends: Ints) -> Self:
        outer = np.full(begins.size, -1, np.int64)
        if (ends[:-1] > begins[1:]).any():
            around: list[int] = []
            limits = ends.tolist()
            for own, begin in enumerate(begins.tolist()):
                while around and limits[around[-1]] <= begin:
                    around.pop()
                outer[own] = around[-1] if around else -1
                around.append(own)
        return cls(begins, ends, outer)

    def innermost(self, at: Ints) -> Ints:
        """The last to begin of those around each place (an end is outside), -1 for none."""
        found = np.searchsorted(self.begins, at, side="right") - 1
        while (over := (found >= 0) & (np.append(self.ends, LAST)[found] <= at)).any():
            found[over] = self.outer[found[over]]
        return found


@dataclass(frozen=True, slots=True)
class Regions:
    """Pieces of work: where each runs, and the context under which it was handed over."""

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
    """By thread, start, and the longer first; most files are written so."""
    same = thread[1:] == thread[:-1]
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (length[1:] <= length[:-1]))
    if (later | ~same).all():
        return np.arange(thread.size)
    return np.lexsort((-length, start, thread))


def _closings(thread: Ints, starting: Mask) -> Ints:
    """For each start among marks of starts and stops the stop that closes it, -1 where the profile ends before."""
    closes = np.full(starting.size, -1, np.int64)
    follows = np.append((thread[1:] == thread[:-1]) & ~starting[1:], False)
    plain = np.flatnonzero(starting & follows)
    closes[plain] = plain + 1
    # What is left are regions inside regions, and those that the profile cuts.
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
