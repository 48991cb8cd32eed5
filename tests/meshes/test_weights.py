"""The table of weights: every parameter of a model once, and KV heads with their copies."""

from math import prod

import pytest

from meshes.case import Case
from meshes.models import MODELS
from meshes.weights import WeightSpec, weights

TINY = Case.read("tp4pp2", model_name="tiny")  # 4 layers: 2 stages of 2


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mesh", ["tp1", "tp2pp2"])
def test_the_weights_are_all_parameters_of_the_model(name: str, mesh: str) -> None:
    case = Case.read(mesh, model_name=name)
    assert sum(prod(spec.shape) for spec in weights(case)) == case.model.num_parameters


@pytest.mark.parametrize(
    ("name", "mesh", "copies"),
    # lcm(4, 8) = 8 heads of 4; lcm(10, 4) = 20 and lcm(10, 8) = 40 of 10, so that 4 and 8 shards hold whole heads.
    [("qwen3-30b-a3b", "tp8", 2), ("phi-4", "tp4pp2", 2), ("phi-4", "tp8", 4), ("phi-4", "tp2", 1)],
)
def test_kv_heads_that_tp_does_not_divide_stand_several_times(name: str, mesh: str, copies: int) -> None:
    case = Case.read(mesh, model_name=name)
    model = case.model
    copied = 2 * model.embed * model.kv_heads * model.head_dim * model.layers * (copies - 1)
    assert sum(prod(spec.shape) for spec in weights(case)) == model.num_parameters + copied
    assert case.kv_heads == copies * model.kv_heads


def test_a_tied_head_has_no_row() -> None:
    names = {spec.name for spec in weights(Case.read("tp8", model_name="llama-3.2-1b"))}
    assert "head.table" not in names
    assert "embedding.table" in names


def test_every_weight_says_each_dim_once_and_its_size() -> None:
    for spec in weights(TINY):
        assert isinstance(spec, WeightSpec)
        assert len(spec.dims.split()) == len(spec.shape) <= 5
