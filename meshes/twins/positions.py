"""Positions of tokens, in numbers for both twins: where a cache keeps them, and how rotary embedding turns by them."""

import math
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.models import Model

NEVER = 2**30
"""The position of an empty place: no query is as late."""


def cache_positions(case: Case) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The position that each place of the cache is for, s32 [cache_length]; `NEVER` for places that stay empty.

    Each rank of `cp` keeps its part of the prompt at the head of its own part of the cache, so that a prompt is cached
    without being moved; new tokens follow on the last rank.
    """
    ranks, part = case.mesh.cp, case.seq // case.mesh.cp
    places = np.arange(case.cache_length // ranks)
    positions = np.arange(ranks)[:, None] * part + places
    positions[:-1, part:] = NEVER
    return positions.reshape(-1).astype(np.int32)


def place_shift(case: Case) -> int:
    """The offset from the position of a new token to its place in the cache."""
    ranks = case.mesh.cp
    return (ranks - 1) * (case.cache_length // ranks - case.seq // ranks)


def inverse_frequencies(model: Model) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Radians a position turns each pair of a head's dims, [head_dim / 2].

    Long wavelengths are stretched by `factor`, short ones kept, those between blended (arXiv 2407.21783;
    `rope_type: llama3` of Hugging Face transformers).
    """
    turns = np.arange(0, model.head_dim, 2, dtype=np.float64) / model.head_dim
    frequencies = model.rope_theta**-turns
    scaling = model.rope_scaling
    if scaling is None:
        return frequencies.astype(np.float32)
    periods = scaling.original_seq * frequencies / (2 * math.pi)
    kept = (periods - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    kept = np.clip(kept, 0.0, 1.0)
    scaled: np.ndarray[Any, np.dtype[np.float32]] = (
        kept * frequencies + (1 - kept) * frequencies / scaling.factor
    ).astype(np.float32)
    return scaled
