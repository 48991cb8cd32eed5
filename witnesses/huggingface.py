"""Hugging Face transformers' own decoders, unmodified: under PyTorch/XLA and under torchax."""

from collections.abc import Mapping
from typing import Any

import torch
import transformers
from torch import Tensor as Array

from meshes.case import Case
from meshes.models import Model
from witnesses.witness import Argument, Enter, Program, Witness, input_arguments, kv_arguments, name_scope

CLASSES = {"llama": "Llama", "qwen3": "Qwen3", "mixtral": "Mixtral"}
"""By the `family` of a model: how transformers' classes begin."""

EXPERTS = {"experts_implementation": "batched_mm"}
"""Of transformers' ways to compute a mixture of experts the one that can be traced from shapes: `eager` is a Python
loop over the experts that were chosen, and neither tracer has `grouped_mm`.  For each token it copies the weights of
its experts."""

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}


def build(witness: Witness, case: Case, enter: Enter) -> Program:
    """A `ForCausalLM` of transformers and its `StaticCache`, as long as the case's."""
    config = read_config(case.model)
    kind = getattr(transformers, f"{CLASSES[case.model.family]}ForCausalLM")
    with torch.device("meta"):
        model = kind._from_config(config, dtype=DTYPES[case.dtype], **EXPERTS if case.model.experts else {}).eval()
    for path, module in model.named_modules():
        # What a block of experts does beside its router belongs to the experts.
        if scope := witness.scope_of(f"{path}.experts" if hasattr(module, "experts") else path):
            module.forward = name_scope(module.forward, scope, enter=enter)
    tensors_of = dict(model.named_parameters()) | dict(model.named_buffers())
    names = [(f"cache.k.{layer}", f"cache.v.{layer}") for layer in range(case.model.layers)]

    def step(tensors: Mapping[str, Array]) -> tuple[Array, Mapping[str, Array]]:
        tokens = tensors["tokens"]
        first = (
            tensors["position"] if "position" in tensors else torch.zeros((), dtype=torch.int32, device=tokens.device)
        )
        cache = transformers.StaticCache(config=config, max_cache_len=case.cache_length)
        layers: list[Any] = cache.layers
        for layer, (key, value) in zip(layers, names, strict=True):
            _fill(layer, tensors[key], tensors[value], first)
        answer = torch.func.functional_call(
            model,
            {name: tensors[name] for name in tensors_of},
            (),
            {"input_ids": tokens, "past_key_values": cache, "use_cache": True, "logits_to_keep": 1},
        )
        pairs = zip(layers, names, strict=True)
        kept = {
            name: held for layer, pair in pairs for name, held in zip(pair, (layer.keys, layer.values), strict=True)
        }
        return answer.logits[:, -1], kept

    return Program(
        arguments=(
            *(_weight(witness, name, tensor) for name, tensor in tensors_of.items()),
            *kv_arguments(case, [name for pair in names for name in pair], dims="batch kv_heads length head_dim"),
            *input_arguments(case),
        ),
        step=step,
        values={f"model.rotary_emb.{name}": table.numpy() for name, table in _rotary_tables(model, config)},
    )


def read_config(model: Model) -> Any:
    """The config of transformers for a model's shapes."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": model.rope_theta}
    if scaling := model.rope_scaling:
        rope |= {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_seq,
        }
    experts = {"num_local_experts": model.experts, "num_experts_per_tok": model.experts_per_token}
    return getattr(transformers, f"{CLASSES[model.family]}Config")(
        **experts if model.experts else {},
        vocab_size=model.vocab,
        hidden_size=model.embed,
        intermediate_size=model.expert_ffn if model.experts else model.ffn,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        head_dim=model.head_dim,
        rms_norm_eps=model.norm_eps,
        tie_word_embeddings=model.tied,
        rope_parameters=rope,
        max_position_embeddings=131_072,
    )


def jax_attention(environment: Any) -> None:
    """Replace PyTorch's attention by `jax.nn.dot_product_attention`, by torchax's own way to override an operation."""
    import jax
    from torchax.interop import jax_view, torch_view

    def attend(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        # torch: [batch heads tokens head_dim]; JAX: [batch tokens heads head_dim]
        q, k, v = (jax_view(each).swapaxes(1, 2) for each in (query, key, value))
        mask = None if attn_mask is None else jax_view(attn_mask)
        return torch_view(
            jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=is_causal, scale=scale).swapaxes(1, 2)
        )

    environment.override_op_definition(torch.nn.functional.scaled_dot_product_attention, attend)


def _fill(layer: Any, keys: Array, values: Array, position: Array) -> None:
    """Give a static cache layer its tensors: what its lazy initialization would make, filled."""
    layer.keys, layer.values = keys, values
    layer.dtype, layer.device = keys.dtype, keys.device
    layer.batch_size, layer.num_heads, _, layer.k_head_dim = keys.shape
    layer.v_head_dim = values.shape[-1]
    layer.max_batch_size, layer.head_dim = layer.batch_size, layer.k_head_dim
    # Each layer counts up its own in place.
    layer.cumulative_length = position.clone()
    layer.is_initialized = True


def _weight(witness: Witness, name: str, tensor: Array) -> Argument:
    names = {dtype: word for word, dtype in DTYPES.items()}
    row, _ = witness.row(name)
    return Argument(name=name, role="weight", dims=row.dims, shape=tuple(tensor.shape), dtype=names[tensor.dtype])


def _rotary_tables(model: Any, config: Any) -> Any:
    """The model's own, with values: built on `meta`, it has none."""
    return type(model.model.rotary_emb)(config=config).named_buffers()
