"""Where a cache keeps the positions of a sequence, with one rank of `cp` and with several."""

from typing import Any

import numpy as np

from meshes.case import Case

NEVER = 2**30
"""The position of a place that holds none: no query is as late."""


def cache_positions(case: Case) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The position that each place of the cache is for, s32 [cache_length]; `NEVER` for places that stay empty.

    Each rank of `cp` keeps its part of the prompt at the head of its own part of the cache, so that a prompt is cached
    without being moved; new tokens follow on the last rank.
    """
    ranks, part = case.mesh.cp, case.seq // case.mesh.cp
    places = np.arange(case.cache_length // ranks)
    found = np.arange(ranks)[:, None] * part + places
    found[:-1, part:] = NEVER
    return found.reshape(-1).astype(np.int32)


def place_shift(case: Case) -> int:
    """What is added to the position of a new token to find its place in the cache."""
    ranks = case.mesh.cp
    return (ranks - 1) * (case.cache_length // ranks - case.seq // ranks)
