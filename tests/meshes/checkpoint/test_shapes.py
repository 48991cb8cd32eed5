"""The contract of models that the twins do not compute: shapes as transformers configures them, rows by hand."""

import json

import pytest

from compare import contract_rows
from compare.cli.plan import main as plan
from compare.contract.row import JudgeError
from meshes.checkpoint import read_model, read_shapes
from meshes.process.errors import MeshError

SIZES = {
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 1024,
    "vocab_size": 32_000,
}
EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}
DENSE = ("mistral", "ministral", "qwen2", "smollm3", "granite", "gemma", "gemma2", "gemma3_text", "glm4")


def config(tmp_path, model_type, **changes):
    """config.json as transformers writes it, with these sizes."""
    mapping = pytest.importorskip("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    sizes = {key: value for key, value in SIZES.items() if key != "head_dim" or model_type != "granite"}
    given = mapping[model_type](**{**sizes, **changes}, pad_token_id=0, bos_token_id=1, eos_token_id=2).to_dict()
    (tmp_path / "config.json").write_text(json.dumps(given))
    return tmp_path


@pytest.mark.parametrize("model_type", DENSE)
def test_a_dense_family_adds_up_what_megatron_adds_up(tmp_path, model_type):
    """dp2tp4, decode, 8 sequences: 4 a device; two sums of 4·512·2 bytes in each of 4 layers, the table's, winners."""
    rows = contract_rows("dp2tp4", checkpoint=config(tmp_path, model_type))
    assert [(row.scope, row.kind, row.executions, row.payload_bytes) for row in rows] == [
        ("layer.attention.out", "all-reduce", 4, 4096),
        ("layer.mlp.down", "all-reduce", 4, 4096),
        ("embed", "all-reduce", 1, 4096),
        ("sample", "all-gather", 1, 4 * 4 * (2 + 4)),
    ]


@pytest.mark.parametrize("model_type", ["gpt_oss", "granitemoe"])
def test_a_family_of_experts_sends_tokens_to_them_and_back(tmp_path, model_type):
    """ep2tp2, decode, 8 sequences: 4 a device, a group; 8 experts have ⌈1.25·2·4/8⌉ = 2 places of 512 elements."""
    rows = contract_rows("ep2tp2", checkpoint=config(tmp_path, model_type, **EXPERTS))
    exchanges = [(row.scope, row.executions, row.payload_bytes) for row in rows if row.kind == "all-to-all"]
    assert exchanges == [("layer.moe.dispatch", 4, 8 * 2 * 512 * 2), ("layer.moe.combine", 4, 8 * 2 * 512 * 2)]
    sums = {row.scope: (row.executions, row.payload_bytes) for row in rows if row.kind == "all-reduce"}
    assert sums == {"layer.attention.out": (4, 4096), "layer.moe.combine": (4, 4096), "embed": (1, 4096)}


def test_the_decoder_of_pictures_and_text_stands_in_its_text_config(tmp_path):
    mapping = pytest.importorskip("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    given = mapping["gemma3"](text_config=mapping["gemma3_text"](**SIZES).to_dict()).to_dict()
    (tmp_path / "config.json").write_text(json.dumps(given))
    model = read_shapes(tmp_path).model
    assert (model.embed, model.layers, model.heads, model.kv_heads, model.head_dim) == (512, 4, 8, 4, 64)


@pytest.mark.parametrize(
    ("model_type", "missing"),
    [
        ("olmo2", "its norms of queries and keys are over all heads, which tp splits: their sums have no row"),
        ("deepseek_v3", "multi-head latent attention, whose cache has no heads for tp to split"),
        ("qwen3_next", "three of four layers are linear attention"),
        ("cohere2", "attention and feed-forward run beside each other, and share one sum"),
    ],
)
def test_a_family_whose_contract_is_not_known_is_refused_with_what_is_missing(tmp_path, model_type, missing):
    (tmp_path / "config.json").write_text(json.dumps({**SIZES, "model_type": model_type}))
    with pytest.raises(
        MeshError, match=f"config.json: model_type is '{model_type}', whose contract is not known: {missing}"
    ):
        contract_rows("tp4", checkpoint=tmp_path)


def test_an_unknown_family_is_refused_with_those_that_are_known(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**SIZES, "model_type": "unheard"}))
    with pytest.raises(MeshError, match="model_type is 'unheard'; known are gemma, gemma2, gemma3_text, glm4, gpt_oss"):
        read_shapes(tmp_path)


@pytest.mark.parametrize(("model_type", "sees_all"), [("mistral", False), ("gemma2", False), ("qwen2", True)])
def test_windows_over_split_positions_are_refused(tmp_path, model_type, sees_all):
    """A ring of all keys is more than a window needs: a contract that is too large would hide what is induced."""
    folder = config(tmp_path, model_type)
    if sees_all:
        assert any(row.axes == "cp" for row in contract_rows("cp2tp2", checkpoint=folder))
        return
    with pytest.raises((MeshError, JudgeError), match="see a window of the last tokens: over cp they need a halo"):
        contract_rows("cp2tp2", checkpoint=folder)


def test_the_plan_is_printed_and_the_twins_still_refuse(tmp_path, capsys):
    folder = config(tmp_path, "mistral")
    assert plan(["--checkpoint", str(folder), "--mesh", "tp4", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["phases"]["decode"]["inherent"]
    assert {row["scope"]: row["payload_bytes"] for row in rows}["layer.mlp.down"] == 8 * 512 * 2
    with pytest.raises(MeshError, match='model_type is "mistral"; known are llama'):
        read_model(folder)
