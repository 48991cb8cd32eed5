"""Model presets by their published shapes."""

from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Self

from meshes.errors import MeshError


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Llama 3's stretching of the rotary wavelengths (arXiv 2407.21783; `rope_type: llama3`)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder of the Llama 3 family: RMSNorm, RoPE, grouped-query attention, SwiGLU."""

    name: str
    vocab: int
    embed: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_theta: float = 500_000.0
    rope_scaling: RopeScaling | None = None
    norm_eps: float = 1e-5
    tied: bool = False
    """Whether the head is the embedding transposed."""

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
        """Of one layer: q, k, v, o; gate, up, down; two norms."""
        attention = 2 * self.embed * self.head_dim * (self.heads + self.kv_heads)
        return attention + 3 * self.embed * self.ffn + 2 * self.embed

    @property
    def num_parameters(self) -> int:
        tables = 1 if self.tied else 2
        return self.layers * self.layer_parameters + tables * self.vocab * self.embed + self.embed


_SCALING_8X = RopeScaling(8.0, 1.0, 4.0, 8192)
_SCALING_32X = RopeScaling(32.0, 1.0, 4.0, 8192)

_TABLE = (
    Model(name="llama-3.2-1b", vocab=128_256, embed=2048, ffn=8192, layers=16, heads=32, kv_heads=8, head_dim=64,
          rope_scaling=_SCALING_32X, tied=True),
    Model(name="llama-3.1-8b", vocab=128_256, embed=4096, ffn=14_336, layers=32, heads=32, kv_heads=8, head_dim=128,
          rope_scaling=_SCALING_8X),
    Model(name="llama-3.1-70b", vocab=128_256, embed=8192, ffn=28_672, layers=80, heads=64, kv_heads=8, head_dim=128,
          rope_scaling=_SCALING_8X),
    # Not published: small enough to run on a laptop's CPU, and still grouped, scaled and untied.
    Model(name="tiny", vocab=512, embed=128, ffn=256, layers=4, heads=16, kv_heads=8, head_dim=16,
          rope_scaling=RopeScaling(8.0, 1.0, 4.0, 32)),
)  # fmt: skip

MODELS = MappingProxyType({row.name: row for row in _TABLE})


def model(name: str) -> Model:
    """The preset with this name."""
    if name not in MODELS:
        raise MeshError(f"unknown model {name!r}; known are {', '.join(MODELS)}")
    return MODELS[name]
