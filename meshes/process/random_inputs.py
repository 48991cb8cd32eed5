"""Random weights, caches and inputs for a step without a checkpoint, the same for every arm."""

from math import prod
from typing import Any
from zlib import crc32

import numpy as np

BLOCK = 1_000_003
"""Drawn at most for one array; repeated, they fill it.  A prime, so that no two rows of an array are alike."""

WIDTH = 0.02
"""Standard deviation of weights, as models of this family are initialised; of caches, too."""


def draw_values(name: str, shape: tuple[int, ...], *, vocab: int, position: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Random numbers for the argument of this name, flat, at most `BLOCK` of them.

    Normal, but for the scales of norms, which are about 1, for `tokens`, which are ids below `vocab`, and for
    `position`, which is what it says.
    """
    if name == "position":
        return np.array([position], dtype=np.int32)
    random = np.random.default_rng(crc32(name.encode()))
    count = min(prod(shape), BLOCK)
    if name == "tokens":
        return random.integers(0, vocab, count, dtype=np.int32)
    normal = random.standard_normal(count, dtype=np.float32) * np.float32(WIDTH)
    return 1 + normal if name.endswith("norm.scale") else normal
