"""The dtypes of checkpoints, in numpy alone: bf16 is kept as its bits."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: Mapping[str, np.dtype[Any]] = MappingProxyType({
    "BF16": np.dtype("<u2"), "F16": np.dtype("<f2"), "F32": np.dtype("<f4"),
})  # fmt: skip
"""As safetensors names them -> what an array of them is here."""

OF_CASE: Mapping[str, str] = MappingProxyType({"bf16": "BF16", "f32": "F32"})


def converted(block: Array, *, kept: str, asked: str) -> Array:
    """Numbers of one dtype as another; rounded to nearest, ties to even, as both frameworks do."""
    if kept == asked:
        return block
    single = widened(block) if kept == "BF16" else block.astype(np.float32)
    return {"F32": single, "BF16": rounded(single)}[asked] if asked != "F32" else single


def widened(bits: Array) -> Array:
    """bf16 as float32, exactly: its bits are the upper half."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(single: Array) -> Array:
    """float32 as the bits of bf16; what is no number stays none."""
    bits = np.ascontiguousarray(single).view(np.uint32)
    upper = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(single), (bits >> 16) | 0x40, upper).astype(np.uint16)
