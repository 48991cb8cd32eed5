"""Numbers for a step without a checkpoint: the same for every arm, few, and of the right kind."""

import numpy as np

from meshes.process.random_inputs import draw_values


def numbers(name: str, *shape: int) -> np.ndarray:
    return draw_values(name, shape, vocab=512, position=32)


def test_they_are_the_same_for_every_arm_and_others_for_every_name():
    assert np.array_equal(numbers("layers.mlp.up", 8, 16), numbers("layers.mlp.up", 8, 16))
    assert not np.array_equal(numbers("layers.mlp.up", 8, 16), numbers("layers.mlp.gate", 8, 16))


def test_a_large_array_costs_no_more_than_a_block():
    """A weight of Llama-3.1-70B, 37 GB in bf16."""
    assert numbers("layers.mlp.up", 20, 4, 8192, 28_672).shape == (1_000_003,)


def test_each_is_of_its_kind():
    weight, scale = numbers("layers.mlp.up", 100, 100), numbers("layers.mlp_norm.scale", 100, 100)
    assert weight.dtype == scale.dtype == np.float32
    assert abs(weight.mean()) < 0.001
    assert abs(weight.std() - 0.02) < 0.001
    assert abs(scale.mean() - 1) < 0.001
    tokens = numbers("tokens", 100, 100)
    assert tokens.dtype == np.int32
    assert set(tokens) == set(range(512))
    assert numbers("position").tolist() == [32]
