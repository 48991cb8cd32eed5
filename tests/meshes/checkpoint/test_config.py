"""config.json of published checkpoints, by their numbers; and what is refused, by name."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meshes.checkpoint import read_model, read_positions
from meshes.checkpoint.config import model_of
from meshes.models import MODELS, RopeScaling
from meshes.process.errors import MeshError
from tests.meshes.checkpoint.hub import CONFIGS, config_of

LLAMA3_ROPE = {
    "factor": 8.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000,
    "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_scaling": LLAMA3_ROPE, "rope_theta": 500000.0, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", "use_cache": True, "vocab_size": 128256,
}  # fmt: skip

_QWEN3: dict[str, Any] = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "head_dim": 128,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}

PUBLISHED: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": LLAMA_8B,
    "llama-3.1-70b": LLAMA_8B | {
        "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_hidden_layers": 80,
    },
    "llama-3.1-405b": LLAMA_8B | {
        "hidden_size": 16384, "intermediate_size": 53248, "num_attention_heads": 128, "num_hidden_layers": 126,
    },
    "llama-3.2-1b": LLAMA_8B | {
        "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "rope_scaling": LLAMA3_ROPE | {"factor": 32.0}, "tie_word_embeddings": True,
    },
    "qwen3-4b": _QWEN3 | {
        "architectures": ["Qwen3ForCausalLM"], "hidden_size": 2560, "intermediate_size": 9728, "max_window_layers": 36,
        "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
        "tie_word_embeddings": True,
    },
    "qwen3-32b": _QWEN3 | {
        "architectures": ["Qwen3ForCausalLM"], "hidden_size": 5120, "intermediate_size": 25600,
        "max_window_layers": 64, "model_type": "qwen3", "num_attention_heads": 64, "num_hidden_layers": 64,
        "num_key_value_heads": 8, "tie_word_embeddings": False,
    },
    "qwen3-30b-a3b": _QWEN3 | {
        "architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1, "hidden_size": 2048,
        "intermediate_size": 6144, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
        "moe_intermediate_size": 768, "norm_topk_prob": True, "num_attention_heads": 32, "num_experts": 128,
        "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": False,
        "router_aux_loss_coef": 0.001, "tie_word_embeddings": False,
    },
    "mixtral-8x7b": {
        "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
        "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
        "output_router_logits": False, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02,
        "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.36.0.dev0", "use_cache": True, "vocab_size": 32000,
    },
    "qwen1.5-moe-a2.7b": {
        "architectures": ["Qwen2MoeForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
        "decoder_sparse_step": 1, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 2048,
        "initializer_range": 0.02, "intermediate_size": 5632, "max_position_embeddings": 8192,
        "max_window_layers": 21, "model_type": "qwen2_moe", "moe_intermediate_size": 1408, "norm_topk_prob": False,
        "num_attention_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "num_hidden_layers": 24,
        "num_key_value_heads": 16, "output_router_logits": False, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 5632, "sliding_window": 32768,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True, "use_sliding_window": False,
        "vocab_size": 151936,
    },
    "phi-4": {
        "_name_or_path": "phi", "architectures": ["Phi3ForCausalLM"], "attention_bias": False,
        "attention_dropout": 0.0, "bos_token_id": 100257, "embd_pdrop": 0.0, "eos_token_id": 100257,
        "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 17920,
        "max_position_embeddings": 16384, "model_type": "phi3", "num_attention_heads": 40, "num_hidden_layers": 40,
        "num_key_value_heads": 10, "original_max_position_embeddings": 16384, "pad_token_id": 100257,
        "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 250000,
        "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True,
        "vocab_size": 100352,
    },
}  # fmt: skip
"""As they lie on the hub."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_is_the_preset(name: str) -> None:
    assert model_of(PUBLISHED[name], name=name) == MODELS[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_config_that_transformers_5_saved_says_the_same(name: str) -> None:
    """dtype for torch_dtype, one table for rope, and num_local_experts for num_experts where it says so."""
    config = dict(PUBLISHED[name])
    config["dtype"] = config.pop("torch_dtype")
    theta, scaling = config.pop("rope_theta"), config.pop("rope_scaling", None)
    config["rope_parameters"] = {"rope_theta": theta, "rope_type": "default", **(scaling or {})}
    if config["model_type"] == "qwen3_moe":
        config["num_local_experts"] = config.pop("num_experts")
    if config["model_type"] == "phi3":
        config["rope_parameters"]["partial_rotary_factor"] = 1.0
    assert model_of(config, name=name) == MODELS[name]


def test_what_a_config_leaves_out_is_what_transformers_takes() -> None:
    config = {
        key: parsed
        for key, parsed in LLAMA_8B.items()
        if key not in ("num_key_value_heads", "rope_theta", "rope_scaling", "tie_word_embeddings")
    }
    parsed = model_of(config, name="some")
    assert (parsed.kv_heads, parsed.rope_theta, parsed.rope_scaling, parsed.tied) == (32, 10_000.0, None, False)
    assert parsed.head_dim == 128  # 4096 / 32
    assert model_of(config_of("qwen3", head_dim=None), name="some").head_dim == 128
    assert model_of(config_of("mixtral", rope_theta=None), name="some").rope_theta == 1e6
    assert not model_of(config_of("qwen2_moe"), name="some").renormalized
    assert not model_of(config_of("qwen2_moe", qkv_bias=False), name="some").qkv_bias


def test_older_spellings_of_the_rope_are_read() -> None:
    row = {"type" if key == "rope_type" else key: parsed for key, parsed in LLAMA3_ROPE.items()}
    parsed = model_of(LLAMA_8B | {"rope_scaling": row}, name="some")
    assert parsed.rope_scaling == RopeScaling(8.0, 1.0, 4.0, 8192)
    assert model_of(LLAMA_8B | {"rope_scaling": {"type": "default"}}, name="some").rope_scaling is None


@pytest.mark.parametrize(
    ("family", "changes", "says"),
    [
        ("llama", {"model_type": "gemma2"}, 'model_type is "gemma2"; known are llama, qwen3, phi3, mixtral'),
        ("llama", {"model_type": None}, "model_type is missing; known are llama"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act is \"gelu\", which is not computed here; it must be 'silu'"),
        ("llama", {"attention_bias": True}, "attention_bias is true, which is not computed here; it must be false"),
        ("llama", {"mlp_bias": True}, "mlp_bias is true"),
        ("mixtral", {"sliding_window": 64}, "sliding_window is 64, .* null .attention sees every earlier token"),
        ("phi3", {"sliding_window": 64}, "sliding_window is 64"),
        ("qwen3", {"sliding_window": 64, "use_sliding_window": True}, "sliding_window is 64"),
        ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types is"),
        ("phi3", {"partial_rotary_factor": 0.75}, "partial_rotary_factor is 0.75"),
        ("phi3", {"rope_scaling": {"type": "longrope", "short_factor": [1.0]}}, 'rope_type is "longrope"'),
        ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 'rope_type is "yarn", which is not'),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, 'rope_type is "linear"'),
        ("llama", {"rope_scaling": {**LLAMA3_ROPE, "attention_factor": 2.0}}, "'llama3' name attention_factor"),
        ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor is missing"),
        ("llama", {"rope_parameters": {"full_attention": {"rope_theta": 1.0}}}, "one table for all layers"),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5; computed here"),
        ("llama", {"rope_parameters": {"rope_theta": 1.0}, "rope_scaling": {"type": "default"}}, "are both there"),
        ("qwen3_moe", {"mlp_only_layers": [0]}, r"mlp_only_layers is \[0\], .* it must be \[\] .all layers alike"),
        ("qwen2_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step is 2, .* it must be 1"),
        ("llama", {"quantization_config": {"quant_method": "fp8"}}, "quantization_config is {.*fp8.*}, which"),
        ("llama", {"attn_logit_softcapping": 50.0}, "unknown keys attn_logit_softcapping: what they change"),
        ("llama", {"hidden_size": None}, "hidden_size is missing; it must be a whole number from 1"),
        ("llama", {"hidden_size": "24"}, 'hidden_size is "24"; it must be a whole number'),
        ("llama", {"num_hidden_layers": 0}, "num_hidden_layers is 0; it must be a whole number from 1"),
        ("llama", {"rms_norm_eps": None}, "rms_norm_eps is missing; it must be a number above 0"),
        ("llama", {"head_dim": None, "num_attention_heads": 10}, "heads 10 does not divide hidden_size 24"),
        ("mixtral", {"num_local_experts": None}, "num_experts is missing"),
        ("mixtral", {"num_experts": 8}, "num_local_experts and num_experts differ"),
        ("mixtral", {"num_experts_per_tok": 5}, "num_experts_per_tok is 5, but there are 4 experts"),
        ("llama", {"num_key_value_heads": 3}, "num_key_value_heads is 3, which does not divide num_attention_heads 8"),
    ],
)
def test_what_no_twin_computes_is_refused_by_name(family: str, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(MeshError, match=says) as raised:
        model_of({**config_of(family), **changes}, name="some")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("junk", [-1, 0, 1.5, True, "8", [1], {"a": 1}, float("nan")], ids=str)
@pytest.mark.parametrize("family", CONFIGS)
def test_no_value_of_any_key_is_worse_than_a_refusal(family: str, junk: Any) -> None:
    config = config_of(
        family, sliding_window=None, layer_types=None, rope_scaling=None, mlp_only_layers=[], tie_word_embeddings=False
    )
    for key in config:
        with suppress(MeshError):
            model_of(config | {key: junk}, name="some")


@pytest.mark.parametrize("family", CONFIGS)
def test_what_is_switched_off_changes_nothing(family: str) -> None:
    off = {
        "attention_bias": False,
        "mlp_bias": False,
        "sliding_window": None,
        "partial_rotary_factor": 1.0,
        "quantization_config": None,
        "_name_or_path": "somewhere",
        "of_a_later_version": None,
    }
    assert model_of(config_of(family) | off, name="some") == model_of(config_of(family), name="some")


def test_a_window_as_long_as_the_longest_prompt_hides_nothing() -> None:
    plain = model_of(config_of("phi3"), name="some")
    assert model_of(config_of("phi3", sliding_window=128), name="some") == plain  # max_position_embeddings is 128
    assert model_of(config_of("qwen3", sliding_window=64, use_sliding_window=False), name="some") == replace(
        plain, family="qwen3", qk_norm=True
    )


def test_a_model_has_the_name_of_its_folder_or_of_its_repository(tmp_path: Path) -> None:
    plain = tmp_path / "my-model"
    cached = tmp_path / "models--meta-llama--Llama-3.1-8B" / "snapshots" / "d04e592bb4f6"
    for folder in (plain, cached):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config_of("llama")))
    assert read_model(plain).name == read_model(f"{plain}/").name == "my-model"
    assert read_model(cached).name == "Llama-3.1-8B"


def test_the_number_of_positions_is_the_one_that_the_config_names(tmp_path: Path) -> None:
    for value, right in ((4096, 4096), (None, None)):
        (tmp_path / "config.json").write_text(json.dumps(config_of("llama", max_position_embeddings=value)))
        assert read_positions(tmp_path) == right
    (tmp_path / "config.json").write_text(json.dumps(config_of("llama", max_position_embeddings="4k")))
    with pytest.raises(MeshError, match=r"config.json: max_position_embeddings is \"4k\"; it must be a whole number"):
        read_positions(tmp_path)


def test_a_folder_without_a_config_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match=r"config\.json: No such file or directory; a checkpoint is a folder with"):
        read_model(tmp_path)
    with pytest.raises(MeshError, match=r"checkpoint '.*none' is no folder; name one with config\.json"):
        read_model(tmp_path / "none")
    for text in ("", "{", "[]", '"llama"'):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(MeshError, match=r"is not JSON|it is no JSON object"):
            read_model(tmp_path)
