"""How much of each column of a picture intervals cover: what is too short to see, told as a part."""

import numpy as np

from compare.timing.arrays import Floats, Ints


def covered(starts: Ints, ends: Ints, *, width: float, columns: int) -> Floats:
    """For each of `columns`, each `width` wide from 0 on: the part of it that they cover; overlaps count twice."""
    edges = np.zeros(columns + 1)
    for times, sign in ((starts, 1.0), (ends, -1.0)):
        # An interval covers all columns after its start, but for those after its end.
        at = np.clip(times / width, 0, columns)
        first = np.floor(at).astype(np.int64)
        np.add.at(edges, np.minimum(first, columns), sign * (1 - (at - first)))
        np.add.at(edges, np.minimum(first + 1, columns), sign * (at - first))
    return np.clip(np.cumsum(edges)[:columns], 0, None)
