"""What the adapters say of the models: every tensor has a row, every scope is a known word, and who is refused why."""

import re
from importlib.util import find_spec

import pytest

from compare.report.witnesses import WITNESSES as REPORTED
from meshes.case import Case
from meshes.process.errors import NotOfferedError
from meshes.scopes import SCOPES
from meshes.weights import weights
from witnesses.catalog import WITNESSES, witness
from witnesses.witness import WitnessError, check


def test_the_report_knows_the_same_witnesses():
    assert list(REPORTED) == list(WITNESSES)
    assert {name for name, row in WITNESSES.items() if row.door == "jax"} == {
        name for name, row in REPORTED.items() if row.arm == "jax"
    }


@pytest.mark.parametrize("name", WITNESSES)
def test_scopes_are_words_of_the_list_and_weights_are_ours(name):
    row = WITNESSES[name]
    assert {scope for _, scope in row.scopes} <= set(SCOPES)
    models = {"llama": "llama-3.1-8b", "qwen3": "qwen3-32b", "mixtral": "mixtral-8x7b"}
    ours = {
        spec.name: set(spec.dims.split())
        for family in row.families
        for spec in weights(Case.read("tp8", model_name=models[family], phases=("decode",)))
    }
    named = [(tensor, weight) for tensor in row.tensors for weight in tensor.weight.split()]
    assert {weight for _, weight in named} == set(ours)
    for tensor, weight in named:
        assert set(re.split(r"[ .]", tensor.dims)) == ours[weight] - {"layers", "stages"}, tensor


@pytest.mark.parametrize(
    ("mesh", "model", "reason"),
    [
        ("tp4pp2", "llama-3.1-8b", "is split over dp and tp only, and this mesh has pp=2"),
        ("cp2tp4", "llama-3.1-8b", "this mesh has cp=2"),
        ("tp8+sp", "llama-3.1-8b", "this one changes stream_seq"),
        ("tp16", "llama-3.1-8b", "holds its 8 KV heads once, and tp=16 would need 16"),
        ("tp8", "qwen1.5-moe-a2.7b", "and qwen1.5-moe-a2.7b is qwen2_moe"),
    ],
)
@pytest.mark.parametrize("name", ["hf-torchxla", "tunix"])
def test_what_is_no_program_of_a_witness_is_refused_by_name_with_the_reason(name, mesh, model, reason):
    with pytest.raises(NotOfferedError, match=f"^{re.escape(name)} .*{re.escape(reason)}"):
        check(witness(name), Case.read(mesh, model_name=model, phases=("decode",)))


@pytest.mark.parametrize("name", WITNESSES)
@pytest.mark.parametrize("mesh", ["tp8", "dp2tp4", "tp4", "dp8"])
def test_tp_and_dp_by_tp_are_offered(name, mesh):
    for model in ("llama-3.1-8b", "llama-3.2-1b", "qwen3-32b", "llama-3.1-70b"):
        check(witness(name), Case.read(mesh, model_name=model, phases=("prefill",)))


def test_an_unknown_name_and_an_unknown_tensor_are_said():
    with pytest.raises(WitnessError, match="unknown reference model 'vllm'; choose from hf-torchxla, "):
        witness("vllm")
    with pytest.raises(WitnessError, match=r"tunix has a tensor layers\.0\.attn\.sink that no row of its table names"):
        witness("tunix").row("layers.0.attn.sink")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("family", ["Llama", "Qwen3", "Mixtral"])
def test_every_tensor_of_the_model_has_a_row_and_is_split_as_megatron_does(family):
    import torch
    import transformers

    from witnesses.huggingface import read_config

    names = {"Llama": "llama-3.1-8b", "Qwen3": "qwen3-32b", "Mixtral": "mixtral-8x7b"}
    case = Case.read("dp2tp4", model_name=names[family], phases=("decode",))
    with torch.device("meta"):
        model = getattr(transformers, f"{family}ForCausalLM")(read_config(case.model))
    split = {}
    for tensor_name, tensor in (*model.named_parameters(), *model.named_buffers()):
        row, _ = witness("hf-torchax").row(tensor_name)
        assert len(row.dims.split()) == tensor.ndim, tensor_name
        split[re.sub(r"\.\d+\.", ".*.", tensor_name)] = [
            dim for dim in row.dims.split() if case.rules.get(dim.partition(".")[0]) == "tp"
        ]
    ends = {name: dims for name, dims in split.items() if dims}
    # Column-parallel in, row-parallel out; norms and the rotary table whole (arXiv 1909.08053).
    feed_forward = {"gate_up_proj", "down_proj"} if family == "Mixtral" else {"gate_proj", "up_proj", "down_proj"}
    assert {name.removesuffix(".weight").split(".")[-1] for name in ends} == feed_forward | {
        "embed_tokens",
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "lm_head",
    }
