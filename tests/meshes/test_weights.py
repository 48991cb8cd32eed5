"""The table of weights: sizes as published, and a checkpoint's layers in their places."""

from math import prod

import numpy as np
import pytest

from meshes.case import Case
from meshes.errors import MeshError
from meshes.models import MODELS
from meshes.weights import WeightSpec, from_huggingface, weights

TINY = Case.read("tp4pp2", model_name="tiny")  # 4 layers: 2 stages of 2


def checkpoint(case: Case) -> dict[str, np.ndarray]:
    """Every array filled with its layer's number (-1 without one), in Hugging Face's shapes."""
    state = {}
    for spec in weights(case):
        shape = spec.shape[2:] if spec.dims.startswith("layers") else spec.shape
        inputs = shape[0] if spec.name != "layers.attention.o" else prod(shape[:2])
        kept = (prod(shape) // inputs, inputs) if spec.transposed else shape
        for layer in range(case.model.layers) if "{layer}" in spec.source else (-1,):
            state[spec.source.format(layer=layer)] = np.full(kept, layer)
    return state


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mesh", ["tp8", "tp4pp2"])
def test_the_weights_are_all_parameters_of_the_model(name: str, mesh: str) -> None:
    case = Case.read(mesh, model_name=name)
    assert sum(prod(spec.shape) for spec in weights(case)) == case.model.num_parameters


def test_a_tied_head_has_no_row() -> None:
    names = {spec.name for spec in weights(Case.read("tp8", model_name="llama-3.2-1b"))}
    assert "head.table" not in names
    assert "embedding.table" in names


def test_every_weight_says_each_dim_once_and_its_size() -> None:
    for spec in weights(TINY):
        assert isinstance(spec, WeightSpec)
        assert len(spec.dims.split()) == len(spec.shape) <= 5


def test_layers_are_numbered_through_the_stages() -> None:
    found = from_huggingface(checkpoint(TINY), case=TINY)
    assert {name: array.shape for name, array in found.items()} == {spec.name: spec.shape for spec in weights(TINY)}
    for name in ("layers.attention.q", "layers.attention.o", "layers.mlp.down", "layers.mlp_norm.scale"):
        numbers = found[name].reshape(2, 2, -1)
        # layer 0 and 1 are the first stage's, 2 and 3 the second's; [layer of the stage, stage]
        assert numbers[..., 0].tolist() == [[0, 2], [1, 3]]
        assert (numbers == numbers[..., :1]).all()


def test_a_projection_is_turned_and_its_heads_are_the_outer_digit() -> None:
    model = TINY.model
    state = checkpoint(TINY)
    rows = np.arange(model.heads * model.head_dim)
    state["model.layers.3.self_attn.q_proj.weight"] = np.repeat(rows[:, None], model.embed, axis=1)
    state["model.layers.3.self_attn.o_proj.weight"] = np.repeat(rows[None], model.embed, axis=0)
    found = from_huggingface(state, case=TINY)
    assert found["layers.attention.q"][1, 1, 0, 5, 7] == 5 * model.head_dim + 7
    assert found["layers.attention.o"][1, 1, 5, 7, 0] == 5 * model.head_dim + 7


def test_a_missing_array_is_named() -> None:
    state = checkpoint(TINY)
    del state["model.norm.weight"]
    with pytest.raises(MeshError, match=r"no 'model\.norm\.weight'"):
        from_huggingface(state, case=TINY)


def test_an_array_of_another_model_is_refused() -> None:
    state = checkpoint(TINY) | {"model.norm.weight": np.zeros(64)}
    with pytest.raises(MeshError, match=r"model\.norm\.weight of the checkpoint has shape \(64,\)"):
        from_huggingface(state, case=TINY)
