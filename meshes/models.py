"""Model presets by their published shapes."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from meshes.process.errors import MeshError
from meshes.process.one_line import quote

LARGEST: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("vocab", "embed", "ffn", "expert_ffn", "shared_ffn", "head_dim"), 2**24),
        **dict.fromkeys(("layers", "heads", "kv_heads", "experts", "experts_per_token"), 2**14),
    }
)
"""Of each size of a model; a hundred times those of the largest that are published."""

MAYBE_NONE = ("ffn", "experts", "experts_per_token", "expert_ffn", "shared_ffn")
"""Sizes that are 0 where a model has no such part."""

MOST_EXPERTS = 2**20
"""Of all layers."""


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Llama 3's scaling of the rotary wavelengths (arXiv 2407.21783; `rope_type: llama3`)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder with RMSNorm, RoPE, grouped-query attention and a gated feed-forward, dense or of experts."""

    name: str
    family: str = "llama"
    """`model_type` of its checkpoints' config.json: it names the table that maps their tensors."""
    vocab: int
    embed: int
    ffn: int
    """Of a dense layer; 0 where every layer is of experts."""
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_theta: float = 500_000.0
    rope_scaling: RopeScaling | None = None
    norm_eps: float = 1e-5
    tied: bool = False
    """Whether the head is the embedding transposed."""
    qk_norm: bool = False
    """A norm over each head of q and k, before the rotary embedding (Qwen3)."""
    qkv_bias: bool = False
    experts: int = 0
    """Of each layer; 0 is a dense model."""
    experts_per_token: int = 0
    expert_ffn: int = 0
    renormalized: bool = True
    """Whether the gates of a token's chosen experts are normalised to sum to one."""
    shared_ffn: int = 0
    """Width of the shared experts, which every token takes, times their own gate (Qwen2-MoE)."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= _NAME or not _is_plain(self.name):
            raise MeshError(f"the model's name is {quote(self.name)}; a plain file name is right")
        for size, largest in LARGEST.items():
            value, least = getattr(self, size), 0 if size in MAYBE_NONE else 1
            if type(value) is not int or not least <= value <= largest:
                raise MeshError(f"{size} of {self.name} is {quote(value)}; write a whole number from 1 to {largest:,}")
        if self.layers * self.experts > MOST_EXPERTS:
            raise MeshError(
                f"{self.name} has {self.layers} × {self.experts} experts; at most {MOST_EXPERTS:,} are read"
            )
        if self.experts and not self.experts_per_token <= self.experts:
            raise MeshError(f"experts_per_token of {self.name} is {self.experts_per_token}, of {self.experts} experts")
        scaling = asdict(self.rope_scaling) if self.rope_scaling else {}
        for name, number in {"rope_theta": self.rope_theta, "norm_eps": self.norm_eps, **scaling}.items():
            if type(number) not in (int, float) or not 0 < number < inf:
                raise MeshError(f"{name} of {self.name} is {quote(number)}; write a number above 0")

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        scaling = fields.get("rope_scaling")
        try:
            return cls(**{**fields, "rope_scaling": RopeScaling(**scaling) if scaling else None})
        except TypeError as error:
            raise MeshError(f"cannot read the model of a case: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def layer_parameters(self) -> int:
        """Of one layer: q, k, v, o and their biases and norms; the feed-forward or the experts; two norms."""
        return self._attention_parameters + self._feed_forward_parameters + 2 * self.embed

    @property
    def num_parameters(self) -> int:
        tables = 1 if self.tied else 2
        return self.layers * self.layer_parameters + tables * self.vocab * self.embed + self.embed

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token uses: of the experts those that it chooses."""
        idle = self.experts - self.experts_per_token
        return self.num_parameters - self.layers * idle * 3 * self.embed * self.expert_ffn

    @property
    def _attention_parameters(self) -> int:
        matrices = 2 * self.embed * self.head_dim * (self.heads + self.kv_heads)
        biases = self.head_dim * (self.heads + 2 * self.kv_heads) if self.qkv_bias else 0
        return matrices + biases + (2 * self.head_dim if self.qk_norm else 0)

    @property
    def _feed_forward_parameters(self) -> int:
        if not self.experts:
            return 3 * self.embed * self.ffn
        shared = 3 * self.embed * self.shared_ffn + self.embed if self.shared_ffn else 0
        return self.embed * self.experts + self.experts * 3 * self.embed * self.expert_ffn + shared


_NAME = 128
"""Characters of a model's name, which is part of a folder's."""


def _is_plain(name: str) -> bool:
    return name.isprintable() and "/" not in name and name not in (".", "..")


MODELS = MappingProxyType(
    {
        name: Model.from_dict({"name": name, **fields})
        for name, fields in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
    }
)
"""The presets."""


def model(name: str) -> Model:
    """The preset with this name."""
    if name not in MODELS:
        raise MeshError(f"unknown model {name!r}; known are {', '.join(MODELS)}")
    return MODELS[name]
