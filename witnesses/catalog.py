"""The witnesses by name: for each the model, the names of its tensors, and the scopes of its modules."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from witnesses.witness import Tensor, Witness, WitnessError

LAYER = r"model\.layers\.(\d+)\."

_HUGGINGFACE: Mapping[str, Any] = {
    "families": ("llama", "qwen3", "mixtral"),
    "owns": ("transformers/models/", "transformers/cache_utils.py", "transformers/integrations/"),
    "build": "witnesses.huggingface:build",
    "tensors": (
        Tensor(path=r"model\.embed_tokens\.weight", dims="vocab embed", weight="embedding.table"),
        Tensor(path=LAYER + r"self_attn\.q_proj\.weight", dims="heads.head_dim embed", weight="layers.attention.q"),
        Tensor(path=LAYER + r"self_attn\.k_proj\.weight", dims="kv_heads.head_dim embed", weight="layers.attention.k"),
        Tensor(path=LAYER + r"self_attn\.v_proj\.weight", dims="kv_heads.head_dim embed", weight="layers.attention.v"),
        Tensor(path=LAYER + r"self_attn\.o_proj\.weight", dims="embed heads.head_dim", weight="layers.attention.o"),
        Tensor(path=LAYER + r"self_attn\.q_norm\.weight", dims="head_dim", weight="layers.attention.q_norm.scale"),
        Tensor(path=LAYER + r"self_attn\.k_norm\.weight", dims="head_dim", weight="layers.attention.k_norm.scale"),
        Tensor(path=LAYER + r"mlp\.gate_proj\.weight", dims="ffn embed", weight="layers.mlp.gate"),
        Tensor(path=LAYER + r"mlp\.up_proj\.weight", dims="ffn embed", weight="layers.mlp.up"),
        Tensor(path=LAYER + r"mlp\.down_proj\.weight", dims="embed ffn", weight="layers.mlp.down"),
        Tensor(path=LAYER + r"mlp\.gate\.weight", dims="choices embed", weight="layers.moe.router"),
        Tensor(
            path=LAYER + r"mlp\.experts\.gate_up_proj",
            dims="experts expert_ffn embed",
            weight="layers.moe.gate layers.moe.up",
        ),
        Tensor(path=LAYER + r"mlp\.experts\.down_proj", dims="experts embed expert_ffn", weight="layers.moe.down"),
        Tensor(path=LAYER + r"input_layernorm\.weight", dims="embed", weight="layers.attention_norm.scale"),
        Tensor(path=LAYER + r"post_attention_layernorm\.weight", dims="embed", weight="layers.mlp_norm.scale"),
        Tensor(path=r"model\.norm\.weight", dims="embed", weight="norm.scale"),
        Tensor(path=r"lm_head\.weight", dims="vocab embed", weight="head.table"),
        Tensor(path=r"model\.rotary_emb\.(?:original_)?inv_freq", dims="_"),
    ),
    "scopes": (
        (r"model\.embed_tokens", "embed"),
        (r"model\.layers\.\d+\.self_attn\.[qkv]_proj", "layer.attention.qkv"),
        (r"model\.layers\.\d+\.self_attn\.o_proj", "layer.attention.out"),
        (r"model\.layers\.\d+\.self_attn", "layer.attention.core"),
        (r"model\.layers\.\d+\.mlp\.gate", "layer.moe.route"),
        # Experts and the sum over those that a token chose are one module; what is required of it is the sum.
        (r"model\.layers\.\d+\.mlp\.experts", "layer.moe.combine"),
        (r"model\.layers\.\d+\.mlp\.down_proj", "layer.mlp.down"),
        (r"model\.layers\.\d+\.mlp(\.(gate|up)_proj)?", "layer.mlp.up"),
        (r".*norm", "norm"),
        (r"lm_head", "head"),
    ),
}

_TUNIX: Mapping[str, Any] = {
    "door": "jax",
    "families": ("llama", "qwen3"),
    "owns": ("tunix/models/",),
    "packages": ("jax", "flax", "google-tunix"),
    "tensors": (
        Tensor(path=r"embedder\.input_embedding", dims="vocab embed", weight="embedding.table"),
        Tensor(path=r"layers\.(\d+)\.attn\.q_proj\.w", dims="embed heads head_dim", weight="layers.attention.q"),
        Tensor(path=r"layers\.(\d+)\.attn\.k_proj\.w", dims="embed kv_heads head_dim", weight="layers.attention.k"),
        Tensor(path=r"layers\.(\d+)\.attn\.v_proj\.w", dims="embed kv_heads head_dim", weight="layers.attention.v"),
        Tensor(path=r"layers\.(\d+)\.attn\.o_proj\.w", dims="heads head_dim embed", weight="layers.attention.o"),
        Tensor(path=r"layers\.(\d+)\.attn\.q_norm\.w", dims="head_dim", weight="layers.attention.q_norm.scale"),
        Tensor(path=r"layers\.(\d+)\.attn\.k_norm\.w", dims="head_dim", weight="layers.attention.k_norm.scale"),
        Tensor(path=r"layers\.(\d+)\.mlp\.gate_proj\.kernel", dims="embed ffn", weight="layers.mlp.gate"),
        Tensor(path=r"layers\.(\d+)\.mlp\.up_proj\.kernel", dims="embed ffn", weight="layers.mlp.up"),
        Tensor(path=r"layers\.(\d+)\.mlp\.down_proj\.kernel", dims="ffn embed", weight="layers.mlp.down"),
        Tensor(path=r"layers\.(\d+)\.input_layernorm\.w", dims="embed", weight="layers.attention_norm.scale"),
        Tensor(path=r"layers\.(\d+)\.post_attention_layernorm\.w", dims="embed", weight="layers.mlp_norm.scale"),
        Tensor(path=r"final_norm\.w", dims="embed", weight="norm.scale"),
        Tensor(path=r"lm_head\.w", dims="embed vocab", weight="head.table"),
    ),
    "scopes": (
        (r"embedder:encode", "embed"),
        (r"embedder:decode", "head"),
        (r"layers\.\d+\.attn\.[qkv]_proj", "layer.attention.qkv"),
        (r"layers\.\d+\.attn\.o_proj", "layer.attention.out"),
        (r"layers\.\d+\.attn", "layer.attention.core"),
        (r"layers\.\d+\.mlp\.down_proj", "layer.mlp.down"),
        (r"layers\.\d+\.mlp(\.(gate|up)_proj)?", "layer.mlp.up"),
        (r".*norm", "norm"),
        (r"lm_head", "head"),
    ),
    "axis_names": MappingProxyType({"dp": "fsdp"}),
    # Attention calls `apply_rope` without the config's theta (0.1.7): no collective depends on it, every logit does.
    "rope_theta": 1e6,
}

_TORCHAX: Mapping[str, Any] = {"door": "torchax", "packages": ("torch", "torchax", "jax", "transformers")}

_ROWS = (
    Witness(name="hf-torchxla", door="torchxla", packages=("torch", "torch_xla", "transformers"), **_HUGGINGFACE),
    Witness(name="hf-torchax", **_TORCHAX, **_HUGGINGFACE),
    Witness(
        name="hf-torchax+jax-attention", override="witnesses.huggingface:jax_attention", **_TORCHAX, **_HUGGINGFACE
    ),
    Witness(name="tunix", build="witnesses.tunix:build", **_TUNIX),
    Witness(name="tunix+norm", build="witnesses.tunix:build_with_whole_norms", **_TUNIX),
)

WITNESSES: Mapping[str, Witness] = MappingProxyType({witness.name: witness for witness in _ROWS})


def witness(name: str) -> Witness:
    """The witness of this name.  Raises `WitnessError` for any other."""
    if name not in WITNESSES:
        raise WitnessError(f"unknown reference model {name!r}; choose from {', '.join(WITNESSES)}")
    return WITNESSES[name]
