"""Rotary frequencies with Llama 3's scaling: numbers of the model alone, the same for both twins."""

import math
from typing import Any

import numpy as np

from meshes.models import Model


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
