"""How much of each column of a picture intervals cover: what is too short to see, told as a part."""

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


def covered(starts: Whole, ends: Whole, *, width: float, columns: int) -> NDArray[np.float64]:
    """For each of `columns`, each `width` wide from 0 on: the part of it that they cover; overlaps count twice."""
    edges = np.zeros(columns + 1)
    for times, sign in ((starts, 1.0), (ends, -1.0)):
        # An interval covers all columns after its start, but for those after its end.
        at = np.clip(times / width, 0, columns)
        first = np.floor(at).astype(np.int64)
        np.add.at(edges, np.minimum(first, columns), sign * (1 - (at - first)))
        np.add.at(edges, np.minimum(first + 1, columns), sign * (at - first))
    return np.clip(np.cumsum(edges)[:columns], 0, None)


def common(starts: Whole, ends: Whole, begins: Whole, stops: Whole) -> tuple[Whole, Whole]:
    """Starts and ends of what any intervals have in common with others that are disjoint and in order."""
    low, high = np.searchsorted(stops, starts, side="right"), np.searchsorted(begins, ends, side="left")
    counts = np.maximum(high - low, 0)
    own = np.repeat(np.arange(counts.size), counts)
    at = np.repeat(low, counts) + np.arange(own.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.maximum(starts[own], begins[at]), np.minimum(ends[own], stops[at])
