"""The shapes of models that the twins do not compute, for the contract: it needs sizes, and where sums are taken.

A family stands in one of two tables: its layers add up what the reference algorithm adds up (docs/definitions.md,
section 2), or something of it has no row there, which the refusal names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from meshes.checkpoint.config import kv_heads_of, model_of, name_of, read_config, whole
from meshes.checkpoint.tables import TABLES
from meshes.models import Model
from meshes.process.errors import MeshError

DENSE, EXPERTS = "llama", "mixtral"

_ALIKE: Mapping[str, str] = MappingProxyType(
    {
        # Windows, soft caps, biases, other activations, multipliers and more norms of a token or a head move nothing.
        **dict.fromkeys(
            ("mistral", "ministral", "qwen2", "smollm3", "granite", "gemma", "gemma2", "gemma3_text", "glm4", "helium"),
            DENSE,
        ),
        "gpt_oss": EXPERTS,
        "granitemoe": EXPERTS,
    }
)
"""`model_type` -> the family whose rows are its own."""

_MISSING: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("olmo2", "olmo3"),
            "its norms of queries and keys are over all heads, which tp splits: their sums have no row",
        ),
        **dict.fromkeys(
            ("deepseek_v2", "deepseek_v3", "kimi_k2"),
            "multi-head latent attention, whose cache has no heads for tp to split, and experts that are summed beside "
            "shared ones after dense layers, have no rows",
        ),
        "qwen3_next": "three of four layers are linear attention, whose states and convolutions have no rows",
        **dict.fromkeys(("cohere", "cohere2"), "attention and feed-forward run beside each other, and share one sum"),
        **dict.fromkeys(("mamba", "mamba2", "jamba", "falcon_h1"), "state-space layers have no rows"),
    }
)
"""`model_type` -> what of it the contract cannot say."""

_NESTED = ("gemma3", "mistral3")
"""Of pictures and text: the decoder's config stands in `text_config`."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """What the contract needs of a checkpoint."""

    model: Model
    windows: bool
    """Whether some layers see a window of the last tokens only: over cp they need less than the rows say."""

    def check_context(self, ranks: int) -> None:
        """`MeshError` where positions are split over ranks, and windows need no more than a halo of them."""
        if self.windows and ranks > 1:
            raise MeshError(
                f"{self.model.name} has layers that see a window of the last tokens: over cp they need a halo, and the "
                f"rows say all keys; name a mesh without cp"
            )


def read_shapes(folder: str | Path) -> Shapes:
    """The shapes of a folder's config.json; `MeshError`, one line, for a family whose contract cannot be said."""
    path = Path(folder) / "config.json"
    config = read_config(path)
    try:
        return shapes_of(config, name=name_of(path.parent))
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from None


def shapes_of(config: Any, *, name: str) -> Shapes:
    """The shapes of a parsed config.json."""
    family = str(config.get("model_type")) if isinstance(config, dict) else ""
    if family in _NESTED and isinstance(config.get("text_config"), dict):
        config = config["text_config"]
        family = str(config.get("model_type"))
    if family in _MISSING:
        raise MeshError(f"model_type is {family!r}, whose contract is not known: {_MISSING[family]}")
    if family in _ALIKE:
        return Shapes(_model(config, _ALIKE[family], name=name), windows=_has_windows(config))
    if family not in TABLES:
        raise MeshError(f"model_type is {family!r}; known are {', '.join(sorted({*TABLES, *_ALIKE}))}")
    return Shapes(model_of(config, name=name), windows=False)


def _model(config: Mapping[str, Any], family: str, *, name: str) -> Model:
    heads, embed = whole(config, "num_attention_heads"), whole(config, "hidden_size")
    keys = {
        "experts": "num_local_experts",
        "experts_per_token": "num_experts_per_tok",
        "expert_ffn": "intermediate_size",
    }
    sizes: dict[str, Any] = {size: whole(config, key) for size, key in keys.items() if family == EXPERTS}
    return Model(
        name=name,
        family=family,
        vocab=whole(config, "vocab_size"),
        embed=embed,
        ffn=0 if family == EXPERTS else whole(config, "intermediate_size"),
        layers=whole(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads_of(config, heads),
        head_dim=whole(config, "head_dim", absent=max(embed // heads, 1)),
        tied=bool(config.get("tie_word_embeddings")),
        **sizes,
    )


def _has_windows(config: Mapping[str, Any]) -> bool:
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        return any("full" not in str(kind) for kind in kinds)
    return bool(config.get("sliding_window")) and config.get("use_sliding_window") is not False
