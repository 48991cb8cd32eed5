"""Unions of intervals, and how much of any window they cover.

An interval is [start, end) in ns; arrays of starts and ends hold many.  Everything is linear after one sort.
"""

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from compare.timeline.arrays import Ints, Times

Edges = TypeVar("Edges", Ints, Times)


@dataclass(frozen=True, slots=True)
class Union:
    """Disjoint intervals in order; none is empty, no two touch."""

    starts: Times
    ends: Times
    cumulative: Times = field(init=False, repr=False)
    """Covered time before each start; the last entry is the total."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cumulative", np.concatenate(([0.0], np.cumsum(self.ends - self.starts))))

    @classmethod
    def of(cls, starts: Times, ends: Times) -> "Union":
        """The union of any intervals; empty ones are dropped."""
        nonempty = ends > starts
        starts, ends = starts[nonempty], ends[nonempty]
        if not starts.size:
            return cls(np.empty(0), np.empty(0))
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            starts, ends = starts[order], ends[order]
        reached = np.maximum.accumulate(ends)
        # An interval of the union begins where no earlier one is still running.
        begins = np.concatenate(([True], starts[1:] > reached[:-1]))
        return cls(starts[begins], reached[np.concatenate((np.flatnonzero(begins)[1:] - 1, [starts.size - 1]))])

    def __or__(self, other: "Union") -> "Union":
        return Union.of(np.concatenate((self.starts, other.starts)), np.concatenate((self.ends, other.ends)))

    def __and__(self, other: "Union") -> "Union":
        return Union.of(*intersect(self.starts, self.ends, other.starts, other.ends))

    @property
    def total(self) -> float:
        return float(self.cumulative[-1])

    def before(self, times: Times) -> Times:
        """Covered time before each time."""
        if not self.starts.size:
            return np.zeros(np.shape(times))
        index = np.searchsorted(self.starts, times, side="right")
        last = np.maximum(index - 1, 0)
        inside = np.clip(np.minimum(times, self.ends[last]) - self.starts[last], 0, None)
        return np.where(index > 0, self.cumulative[last] + inside, 0.0)

    def inside(self, starts: Times, ends: Times) -> Times:
        """Covered time within each window."""
        return np.maximum(self.before(ends) - self.before(starts), 0.0)


def intersect(starts: Edges, ends: Edges, begins: Edges, stops: Edges) -> tuple[Edges, Edges]:
    """Starts and ends of the intersections of any intervals with disjoint, ordered ones (begins, stops)."""
    low, high = np.searchsorted(stops, starts, side="right"), np.searchsorted(begins, ends, side="left")
    counts = np.maximum(high - low, 0)
    repeats = np.repeat(np.arange(counts.size), counts)
    others = np.repeat(low, counts) + np.arange(repeats.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.maximum(starts[repeats], begins[others]), np.minimum(ends[repeats], stops[others])


def subtract(union: Union, other: Union) -> Union:
    """What of one is not in the other."""
    if not union.starts.size or not other.starts.size:
        return union
    begins: Times = np.append(-np.inf, other.ends)
    stops: Times = np.append(other.starts, np.inf)
    starts, ends = intersect(union.starts, union.ends, begins, stops)
    return Union.of(starts, ends)


def exposed_shares(starts: Times, ends: Times, busy: Union) -> Times:
    """For each interval its time outside `busy`, divided evenly among the intervals that run at the same time.

    The shares add up to the length of (the union of the intervals) minus `busy`.
    """
    if not starts.size:
        return np.empty(0)
    edges = np.unique(np.concatenate((starts, ends)))
    running = np.zeros(edges.size, dtype=np.int64)
    np.add.at(running, np.searchsorted(edges, starts), 1)
    np.add.at(running, np.searchsorted(edges, ends), -1)
    running = np.cumsum(running)[:-1]
    free = (edges[1:] - edges[:-1]) - busy.inside(edges[:-1], edges[1:])
    share = np.divide(free, running, out=np.zeros_like(free), where=running > 0)
    sums = np.concatenate(([0.0], np.cumsum(share)))
    return sums[np.searchsorted(edges, ends)] - sums[np.searchsorted(edges, starts)]
