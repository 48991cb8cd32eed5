"""The tensor names of each family of checkpoints: one table a family."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from meshes.models import Model
from meshes.process.errors import MeshError
from meshes.weights import dims_of


@dataclass(frozen=True, slots=True)
class Source:
    """A tensor of a checkpoint: its name, its dims, and which of its parts a weight is."""

    name: str
    """With `{layer}` and `{expert}` where there is one for each."""
    dims: str
    """In the order of the checkpoint: `,` between dims, `*` between the digits of one, `+` between parts of one."""
    part: int = 0

    def each(self, model: Model) -> tuple[str, ...]:
        """The names of all tensors that hold this weight's numbers."""
        layers = range(model.layers if "{layer}" in self.name else 1)
        experts = range(model.experts if "{expert}" in self.name else 1)
        return tuple(self.name.format(layer=layer, expert=expert) for layer in layers for expert in experts)

    def shape(self, model: Model) -> tuple[int, ...]:
        """Of each of them, as the checkpoint has it."""
        return tuple(sum(_size(part, model) for part in dim.split("+")) for dim in self.dims.split(","))

    def digits(self, at: int) -> tuple[str, ...]:
        """The names of what is counted along one dim, in this weight's part of it; a dim of 1 counts nothing."""
        parts = self.dims.split(",")[at].split("+")
        names = tuple(name.strip() for name in parts[self.part if len(parts) > 1 else 0].split("*"))
        return () if names == ("1",) else names

    def offset(self, at: int, *, model: Model) -> int:
        """Where this weight's part of a dim begins."""
        parts = self.dims.split(",")[at].split("+")
        return sum(_size(part, model) for part in parts[: self.part]) if len(parts) > 1 else 0


def _size(part: str, model: Model) -> int:
    return prod(int(name) if name == "1" else dim_size(name, model=model) for name in map(str.strip, part.split("*")))


def dim_size(dim: str, *, model: Model) -> int:
    """In a checkpoint, where no KV head has a copy."""
    size: int = model.experts if dim == "choices" else getattr(model, dim)
    return size


Table = Mapping[str, tuple[Source, ...]]
"""Weight -> where it is; where there are several spellings, the first is that of the published checkpoints."""


Rows = dict[str, Source | tuple[Source, ...]]


def _table(*tables: Rows) -> Table:
    rows = {name: value if isinstance(value, tuple) else (value,) for table in tables for name, value in table.items()}
    return MappingProxyType(rows)


_ENDS: Rows = {
    "embedding.table": Source("model.embed_tokens.weight", "vocab, embed"),
    "layers.attention_norm.scale": Source("model.layers.{layer}.input_layernorm.weight", "embed"),
    "layers.attention.o": Source("model.layers.{layer}.self_attn.o_proj.weight", "embed, heads*head_dim"),
    "layers.mlp_norm.scale": Source("model.layers.{layer}.post_attention_layernorm.weight", "embed"),
    "norm.scale": Source("model.norm.weight", "embed"),
    "head.table": Source("lm_head.weight", "vocab, embed"),
}

_QKV: Rows = {
    "layers.attention.q": Source("model.layers.{layer}.self_attn.q_proj.weight", "heads*head_dim, embed"),
    "layers.attention.k": Source("model.layers.{layer}.self_attn.k_proj.weight", "kv_heads*head_dim, embed"),
    "layers.attention.v": Source("model.layers.{layer}.self_attn.v_proj.weight", "kv_heads*head_dim, embed"),
}

_QKV_BIAS: Rows = {
    "layers.attention.q_bias": Source("model.layers.{layer}.self_attn.q_proj.bias", "heads*head_dim"),
    "layers.attention.k_bias": Source("model.layers.{layer}.self_attn.k_proj.bias", "kv_heads*head_dim"),
    "layers.attention.v_bias": Source("model.layers.{layer}.self_attn.v_proj.bias", "kv_heads*head_dim"),
}

_QK_NORM: Rows = {
    "layers.attention.q_norm.scale": Source("model.layers.{layer}.self_attn.q_norm.weight", "head_dim"),
    "layers.attention.k_norm.scale": Source("model.layers.{layer}.self_attn.k_norm.weight", "head_dim"),
}

_MLP: Rows = {
    "layers.mlp.gate": Source("model.layers.{layer}.mlp.gate_proj.weight", "ffn, embed"),
    "layers.mlp.up": Source("model.layers.{layer}.mlp.up_proj.weight", "ffn, embed"),
    "layers.mlp.down": Source("model.layers.{layer}.mlp.down_proj.weight", "embed, ffn"),
}

_FUSED = "heads*head_dim + kv_heads*head_dim + kv_heads*head_dim, embed"

_PHI: Rows = {
    "layers.attention.q": Source("model.layers.{layer}.self_attn.qkv_proj.weight", _FUSED, 0),
    "layers.attention.k": Source("model.layers.{layer}.self_attn.qkv_proj.weight", _FUSED, 1),
    "layers.attention.v": Source("model.layers.{layer}.self_attn.qkv_proj.weight", _FUSED, 2),
    "layers.mlp.gate": Source("model.layers.{layer}.mlp.gate_up_proj.weight", "ffn + ffn, embed", 0),
    "layers.mlp.up": Source("model.layers.{layer}.mlp.gate_up_proj.weight", "ffn + ffn, embed", 1),
    "layers.mlp.down": Source("model.layers.{layer}.mlp.down_proj.weight", "embed, ffn"),
}

_STACKED = "experts, expert_ffn + expert_ffn, embed"


def _experts(room: str, gate: str, up: str, down: str) -> Rows:
    """Experts as published, each with tensors of its own, or as transformers 5 keeps them in memory, stacked."""
    each = f"model.layers.{{layer}}.{room}.experts.{{expert}}"
    stacked = "model.layers.{layer}.mlp.experts"
    return {
        "layers.moe.router": (
            Source(f"model.layers.{{layer}}.{room}.gate.weight", "choices, embed"),
            Source("model.layers.{layer}.mlp.gate.weight", "choices, embed"),
        ),
        "layers.moe.gate": (
            Source(f"{each}.{gate}.weight", "expert_ffn, embed"),
            Source(f"{stacked}.gate_up_proj", _STACKED, 0),
        ),
        "layers.moe.up": (
            Source(f"{each}.{up}.weight", "expert_ffn, embed"),
            Source(f"{stacked}.gate_up_proj", _STACKED, 1),
        ),
        "layers.moe.down": (
            Source(f"{each}.{down}.weight", "embed, expert_ffn"),
            Source(f"{stacked}.down_proj", "experts, embed, expert_ffn"),
        ),
    }


_SHARED: Rows = {
    "layers.shared.gate": Source("model.layers.{layer}.mlp.shared_expert.gate_proj.weight", "shared_ffn, embed"),
    "layers.shared.up": Source("model.layers.{layer}.mlp.shared_expert.up_proj.weight", "shared_ffn, embed"),
    "layers.shared.down": Source("model.layers.{layer}.mlp.shared_expert.down_proj.weight", "embed, shared_ffn"),
    "layers.shared_gate": Source("model.layers.{layer}.mlp.shared_expert_gate.weight", "1, embed"),
}

_QWEN_EXPERTS = _experts("mlp", "gate_proj", "up_proj", "down_proj")

TABLES: Mapping[str, Table] = MappingProxyType(
    {
        "llama": _table(_ENDS, _QKV, _MLP),
        "qwen3": _table(_ENDS, _QKV, _QK_NORM, _MLP),
        "phi3": _table(_ENDS, _PHI),
        "mixtral": _table(_ENDS, _QKV, _experts("block_sparse_moe", "w1", "w3", "w2")),
        "qwen3_moe": _table(_ENDS, _QKV, _QK_NORM, _QWEN_EXPERTS),
        "qwen2_moe": _table(_ENDS, _QKV, _QKV_BIAS, _QWEN_EXPERTS, _SHARED),
    }
)
"""By `model_type` of config.json."""

IDLE = ("lm_head.weight", "rotary_emb.inv_freq")
"""Ends of names of tensors that some checkpoints hold and nobody reads: a tied head, and what config.json says."""


def sources(model: Model, *, names: frozenset[str]) -> dict[str, Source]:
    """Where each weight of the model is among tensors of these names.

    Raises `MeshError`, one line, where tensors are missing, or are there that no weight is read from.
    """
    chosen = {weight: _choose_spelling(TABLES[model.family][weight], model, names) for weight in dims_of(model)}
    needed = {name for source in chosen.values() for name in source.each(model)}
    unknown = sorted(name for name in names - needed if not name.endswith(IDLE))
    if missing := sorted(needed - names):
        but = f", but {unknown[0]!r}, which is unknown" if unknown else ""
        raise MeshError(
            f"the checkpoint has no {_list_names(missing)}{but}; {model.family} of {model.layers} layers needs it"
        )
    if unknown:
        raise MeshError(
            f"the checkpoint has {_list_names(unknown)}, which {model.family} of {model.layers} layers does not have"
        )
    return chosen


def _choose_spelling(spellings: tuple[Source, ...], model: Model, names: frozenset[str]) -> Source:
    """The spelling that these tensors are named in; the first, where they are in none."""
    return next((source for source in spellings if source.each(model)[0] in names), spellings[0])


def _list_names(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")
