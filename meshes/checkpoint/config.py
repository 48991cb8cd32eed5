"""Parse a checkpoint's config.json into a `Model`; options that the twins do not implement are refused."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from meshes.checkpoint.tables import TABLES
from meshes.models import Model, RopeScaling
from meshes.process.documents import read_json
from meshes.process.errors import MeshError

Config = Mapping[str, Any]

THETAS = MappingProxyType({"mixtral": 1e6})
"""Where config.json names no rope_theta: what transformers takes; 10,000 for the other families."""

_EXPERTS = ("mixtral", "qwen3_moe", "qwen2_moe")

_SCALING = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")

_REFUSED: Mapping[str, tuple[Callable[[Any, Config], bool], str]] = MappingProxyType(
    {
        "hidden_act": (lambda value, config: value == "silu", "'silu'"),
        "attention_bias": (lambda value, config: not value, "false"),
        "mlp_bias": (lambda value, config: not value, "false"),
        "decoder_sparse_step": (lambda value, config: value == 1, "1 (all layers alike)"),
        "mlp_only_layers": (lambda value, config: not value, "[] (all layers alike)"),
        "partial_rotary_factor": (lambda value, config: value in (None, 1), "1 (all of a head is turned)"),
        "sliding_window": (lambda value, config: _sees_all(value, config), "null (attention sees every earlier token)"),
        "layer_types": (
            lambda value, config: set(_words(value)) <= {"full_attention"},
            "'full_attention' for each layer",
        ),
        "quantization_config": (lambda value, config: not value, "null (weights of bf16, f16 or f32)"),
    }
)
"""Key -> whether its value is supported, and which value would be."""

_READ = ("model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
         "num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters",
         "tie_word_embeddings", "num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
         "norm_topk_prob", "shared_expert_intermediate_size", "qkv_bias", "use_sliding_window")  # fmt: skip

_HARMLESS = frozenset({
    # Provenance.
    "architectures", "transformers_version", "auto_map", "name_or_path", "tokenizer_class", "task_specific_params",
    # Storage, training, initialisation.
    "dtype", "torch_dtype", "initializer_range", "attention_dropout", "resid_pdrop", "embd_pdrop", "hidden_dropout",
    "router_aux_loss_coef", "output_router_logits", "router_jitter_noise", "pretraining_tp", "input_jitter_noise",
    # Read by a window or a longer rope only; both are checked by their own keys.
    "max_position_embeddings", "original_max_position_embeddings", "max_window_layers",
    # Special tokens, and sampling.
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "use_cache",
    "id2label", "label2id", "problem_type", "finetuning_task", "return_dict", "output_attentions",
    "output_hidden_states", "chunk_size_feed_forward", "is_decoder", "is_encoder_decoder", "torchscript",
    "do_sample", "temperature", "top_k", "top_p", "typical_p", "max_length", "min_length", "num_beams",
    "num_beam_groups", "num_return_sequences", "length_penalty", "repetition_penalty", "diversity_penalty",
    "encoder_no_repeat_ngram_size", "no_repeat_ngram_size", "early_stopping", "bad_words_ids", "suppress_tokens",
    "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "return_dict_in_generate", "output_scores", "prefix",
})  # fmt: skip
"""Keys that change no number of an inference step."""


def read_model(folder: str | Path) -> Model:
    """The model of a folder's config.json, by the folder's name; nothing else of the folder is read.

    Raises `MeshError`, one line, naming the key that is missing or requests what is not implemented here.
    """
    path = Path(folder) / "config.json"
    config = read_config(path)
    try:
        return model_of(config, name=name_of(path.parent))
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from None


def read_positions(folder: str | Path) -> int | None:
    """`max_position_embeddings` of the folder's config.json; `None` where it is missing."""
    path = Path(folder) / "config.json"
    config = read_config(path)
    if not isinstance(config, dict) or config.get("max_position_embeddings") is None:
        return None
    try:
        return whole(config, "max_position_embeddings")
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from None


def read_config(path: Path) -> Any:
    if not path.parent.is_dir():
        raise MeshError(
            f"checkpoint {str(path.parent)!r} is no folder; name one with config.json and safetensors files"
        )
    try:
        return read_json(path)
    except OSError as error:
        raise MeshError(f"cannot read {path}: {error.strerror}; a checkpoint is a folder with config.json") from None
    except MeshError as error:
        raise MeshError(f"{path} is {error}") from None


def name_of(folder: Path) -> str:
    """The folder's; of a folder in Hugging Face's cache the repository's."""
    path = folder.resolve()
    repository = path.parent.parent.name
    if path.parent.name == "snapshots" and repository.startswith("models--"):
        return repository.rpartition("--")[2]
    return path.name


def model_of(config: Any, *, name: str) -> Model:
    """The model of a parsed config.json."""
    if not isinstance(config, dict):
        raise MeshError("it is no JSON object; a table with model_type would be right")
    family = config.get("model_type")
    if not isinstance(family, str) or family not in TABLES:
        raise MeshError(f"model_type is {_said(family)}; known are {', '.join(TABLES)}")
    _check_keys(config)
    heads = whole(config, "num_attention_heads")
    theta, scaling = _rope(config, family)
    return Model(
        name=name,
        family=family,
        vocab=whole(config, "vocab_size"),
        embed=whole(config, "hidden_size"),
        ffn=0 if family in _EXPERTS else whole(config, "intermediate_size"),
        layers=whole(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads_of(config, heads),
        head_dim=_head_dim(config, family, heads),
        rope_theta=theta,
        rope_scaling=scaling,
        norm_eps=_number(config, "rms_norm_eps"),
        tied=bool(config.get("tie_word_embeddings")),
        qk_norm=family in ("qwen3", "qwen3_moe"),
        qkv_bias=family == "qwen2_moe" and config.get("qkv_bias", True) is not False,
        **(_experts(config, family) if family in _EXPERTS else {}),
    )


def _check_keys(config: Config) -> None:
    for key, (computed, right) in _REFUSED.items():
        if key in config and not computed(config[key], config):
            raise MeshError(f"{key} is {json.dumps(config[key])[:80]}, which is not computed here; it must be {right}")
    known = {*_READ, *_REFUSED, *_HARMLESS}
    unknown = [key for key, value in config.items() if key not in known and not key.startswith("_") and value]
    if unknown:
        raise MeshError(
            f"unknown keys {', '.join(sorted(unknown))}: what they change is not known here; take them out if they "
            f"change no numbers"
        )


def _sees_all(window: Any, config: Config) -> bool:
    """Whether a sliding window is none, switched off, or as long as the longest prompt."""
    longest = config.get("max_position_embeddings")
    never = isinstance(window, int) and isinstance(longest, int) and window >= longest
    return not window or never or config.get("use_sliding_window") is False


def _words(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value] if value else [])]


def kv_heads_of(config: Config, heads: int) -> int:
    heads_kv = whole(config, "num_key_value_heads", absent=heads)
    if heads % heads_kv:
        raise MeshError(f"num_key_value_heads is {heads_kv}, which does not divide num_attention_heads {heads}")
    return heads_kv


def _head_dim(config: Config, family: str, heads: int) -> int:
    embed = whole(config, "hidden_size")
    if config.get("head_dim") is None and family != "qwen3" and embed % heads:
        raise MeshError(f"head_dim is missing, and num_attention_heads {heads} does not divide hidden_size {embed}")
    return whole(config, "head_dim", absent=128 if family == "qwen3" else embed // heads)


def _experts(config: Config, family: str) -> dict[str, Any]:
    keys = [key for key in ("num_local_experts", "num_experts") if config.get(key) is not None]
    if len({str(config[key]) for key in keys}) > 1:
        raise MeshError("num_local_experts and num_experts differ; name one number of experts")
    count, chosen = whole(config, keys[0] if keys else "num_experts"), whole(config, "num_experts_per_tok")
    if chosen > count:
        raise MeshError(f"num_experts_per_tok is {chosen}, but there are {count} experts")
    return {
        "experts": count,
        "experts_per_token": chosen,
        "expert_ffn": whole(config, "intermediate_size" if family == "mixtral" else "moe_intermediate_size"),
        "renormalized": family == "mixtral" or bool(config.get("norm_topk_prob")),
        "shared_ffn": whole(config, "shared_expert_intermediate_size") if family == "qwen2_moe" else 0,
    }


def _rope(config: Config, family: str) -> tuple[float, RopeScaling | None]:
    """Theta and scaling, in the spelling up to transformers 4 (rope_theta, rope_scaling) or since (rope_parameters)."""
    given = [config[key] for key in ("rope_parameters", "rope_scaling") if config.get(key)]
    if len(given) == 2:
        raise MeshError("rope_parameters and rope_scaling are both there; one of them says how the rope is stretched")
    row = given[0] if given else {}
    if not isinstance(row, dict) or any(isinstance(value, dict) for value in row.values()):
        raise MeshError(f"rope parameters are {json.dumps(row)[:80]}; computed here is one table for all layers")
    theta = row.get("rope_theta", config.get("rope_theta"))
    kind = row.get("rope_type", row.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise MeshError(f"rope_type is {_said(kind)}, which is not computed here; it must be 'default' or 'llama3'")
    if row.get("partial_rotary_factor") not in (None, 1):
        raise MeshError(f"partial_rotary_factor is {_said(row['partial_rotary_factor'])}; computed here is 1")
    used = {"rope_theta", "rope_type", "type", "partial_rotary_factor", *(_SCALING if kind == "llama3" else ())}
    if unknown := sorted(set(row) - used):
        raise MeshError(f"rope parameters of type {kind!r} name {', '.join(unknown)}, which is not computed here")
    at = _number({"rope_theta": THETAS.get(family, 10_000.0) if theta is None else theta}, "rope_theta")
    return at, _scaling(row) if kind == "llama3" else None


def _scaling(row: Config) -> RopeScaling:
    factor, low, high, _ = (_number(row, key) for key in _SCALING)
    return RopeScaling(factor, low, high, whole(row, _SCALING[-1]))


def _said(value: Any) -> str:
    return "missing" if value is None else json.dumps(value)[:80]


def whole(config: Config, key: str, *, absent: int | None = None) -> int:
    value = config.get(key)
    value = absent if value is None else value
    if type(value) is not int or value < 1:
        raise MeshError(f"{key} is {_said(value)}; it must be a whole number from 1")
    return value


def _number(config: Config, key: str) -> float:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise MeshError(f"{key} is {_said(value)}; it must be a number above 0")
    return float(value)
