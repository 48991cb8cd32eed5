"""The arithmetic of the published models, by hand."""

import pytest

from compare.contract.useful_flops import count_useful_flops
from meshes.case import Case


def case(mesh="tp8", **more):
    return Case.read(mesh, **{"phases": ("prefill",), "batch": 8, "seq": 1024} | more)


LAYER_OF_8B = 4096 * (4096 + 1024 + 1024) + 4096 * 4096 + 3 * 4096 * 14336
"""q, k, v; out; gate, up and down."""


@pytest.mark.parametrize("mesh", ["tp8", "pp2tp4", "dp2tp4"])
def test_prefill_of_llama_3_1_8b(mesh):
    """2 × (parameters without embedding, head and norms) × tokens + attention + 2·B·D·V."""
    attention = 4 * 8 * 1024 * 1024 * 4096 * 32
    head = 2 * 8 * 4096 * 128256
    assert count_useful_flops(case(mesh)) == 2 * 32 * LAYER_OF_8B * 8 * 1024 + attention + head


def test_decode_attends_to_every_place_of_the_cache():
    """A prompt of 1024 and a new token take 9 tiles of 128 places."""
    attention = 4 * 8 * 1152 * 4096 * 32
    head = 2 * 8 * 4096 * 128256
    assert count_useful_flops(case(phases=("decode",))) == 2 * 32 * LAYER_OF_8B * 8 + attention + head


def test_of_experts_those_count_that_a_token_chooses():
    """Mixtral 8x7B: 2 of 8 experts, and a router of 8 columns; 32 layers of 4096, 14336, 32 and 8 heads of 128."""
    layer = 4096 * (4096 + 1024 + 1024) + 4096 * 4096 + 4096 * 8 + 2 * 3 * 4096 * 14336
    attention = 4 * 8 * 1024 * 1024 * 4096 * 32
    head = 2 * 8 * 4096 * 32000
    mixtral = case("ep8", model_name="mixtral-8x7b")
    assert count_useful_flops(mixtral) == 2 * 32 * layer * 8 * 1024 + attention + head
