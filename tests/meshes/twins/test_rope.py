"""Rotary frequencies against Hugging Face transformers' (5.23, `_compute_llama3_parameters`), and by hand."""

from dataclasses import replace

import numpy as np

from meshes.models import model
from meshes.twins.positions import inverse_frequencies


def test_without_scaling_pair_i_turns_by_theta_to_the_minus_2i_over_head_dim() -> None:
    plain = replace(model("tiny"), rope_scaling=None, rope_theta=10_000.0, head_dim=8)
    assert np.allclose(inverse_frequencies(plain), [1.0, 0.1, 0.01, 0.001], rtol=1e-6)


def test_short_waves_are_kept_and_long_ones_stretched() -> None:
    frequencies = inverse_frequencies(model("llama-3.1-8b"))
    plain = 500_000.0 ** -(np.arange(64) / 64)
    waves = 2 * np.pi / plain
    assert frequencies.dtype == np.float32
    assert np.allclose(frequencies[waves < 8192 / 4], plain[waves < 8192 / 4], rtol=1e-6)
    assert np.allclose(frequencies[waves > 8192], plain[waves > 8192] / 8, rtol=1e-6)
    between = (waves > 8192 / 4) & (waves < 8192)
    assert between.any()
    assert (frequencies[between] < plain[between]).all()
    assert (frequencies[between] > plain[between] / 8).all()


def test_the_tiny_preset_turns_as_transformers_has_it() -> None:
    right = [1.0000e00, 2.4240e-02, 4.7008e-03, 9.1158e-04, 1.7678e-04, 3.4281e-05, 6.6479e-06, 1.2892e-06]
    assert np.allclose(inverse_frequencies(model("tiny")), right, rtol=1e-4)
