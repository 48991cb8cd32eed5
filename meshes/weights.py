"""The one table of weights, for both twins: names, dims, shapes."""

from collections.abc import Callable
from dataclasses import dataclass

from meshes.case import Case
from meshes.models import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSpec:
    """One weight of the model, stacked over the stages; in a scan of layers also over the layers of a stage.

    Where layers are unrolled each has weights of its own, as programs have that were written so.
    """

    name: str
    """Its path in the modules of either twin, like `layers.attention.q`; of unrolled layers `layers.3.attention.q`."""
    dims: str
    """`layers` are those of one stage: layer number = stage · (layers of a stage) + layer."""
    shape: tuple[int, ...]
    row: str
    """Its name without a layer's number, under which a checkpoint has it."""
    layer: int = 0
    """Of unrolled layers: which of its stage's."""


_ROWS: tuple[tuple[str, str, Callable[[Model], bool]], ...] = (
    ("embedding.table", "vocab embed", lambda model: True),
    ("layers.attention_norm.scale", "layers stages embed", lambda model: True),
    ("layers.attention.q", "layers stages heads embed head_dim", lambda model: True),
    ("layers.attention.k", "layers stages kv_heads embed head_dim", lambda model: True),
    ("layers.attention.v", "layers stages kv_heads embed head_dim", lambda model: True),
    ("layers.attention.q_bias", "layers stages heads head_dim", lambda model: model.qkv_bias),
    ("layers.attention.k_bias", "layers stages kv_heads head_dim", lambda model: model.qkv_bias),
    ("layers.attention.v_bias", "layers stages kv_heads head_dim", lambda model: model.qkv_bias),
    ("layers.attention.q_norm.scale", "layers stages head_dim", lambda model: model.qk_norm),
    ("layers.attention.k_norm.scale", "layers stages head_dim", lambda model: model.qk_norm),
    ("layers.attention.o", "layers stages heads head_dim embed", lambda model: True),
    ("layers.mlp_norm.scale", "layers stages embed", lambda model: True),
    ("layers.mlp.gate", "layers stages embed ffn", lambda model: not model.experts),
    ("layers.mlp.up", "layers stages embed ffn", lambda model: not model.experts),
    ("layers.mlp.down", "layers stages ffn embed", lambda model: not model.experts),
    ("layers.moe.router", "layers stages embed choices", lambda model: model.experts > 0),
    ("layers.moe.gate", "layers stages experts embed expert_ffn", lambda model: model.experts > 0),
    ("layers.moe.up", "layers stages experts embed expert_ffn", lambda model: model.experts > 0),
    ("layers.moe.down", "layers stages experts expert_ffn embed", lambda model: model.experts > 0),
    ("layers.shared.gate", "layers stages embed shared_ffn", lambda model: model.shared_ffn > 0),
    ("layers.shared.up", "layers stages embed shared_ffn", lambda model: model.shared_ffn > 0),
    ("layers.shared.down", "layers stages shared_ffn embed", lambda model: model.shared_ffn > 0),
    ("layers.shared_gate", "layers stages embed", lambda model: model.shared_ffn > 0),
    ("norm.scale", "embed", lambda model: True),
    ("head.table", "embed vocab", lambda model: not model.tied),
)
"""Name, dims, and the models that have it: a tied head is the embedding, and has no row."""

_OWN = ("vocab", "embed", "ffn", "heads", "head_dim", "experts", "expert_ffn", "shared_ffn")


def dim_sizes(case: Case) -> dict[str, int]:
    """The size of each dim that a weight or an activation names."""
    model = case.model
    return {dim: getattr(model, dim) for dim in _OWN} | {
        "kv_heads": case.kv_heads,
        "choices": model.experts,
        "layers": model.layers // case.mesh.pp,
        "stages": case.mesh.pp,
        "slots": case.microbatches,
        "batch": case.batch // case.microbatches,
        "seq": case.seq,
    }


def weights(case: Case) -> tuple[WeightSpec, ...]:
    """Every weight of the case's model, KV heads with their copies."""
    sizes = dim_sizes(case)
    return tuple(
        WeightSpec(name=name, dims=dims, shape=tuple(sizes[dim] for dim in dims.split()), row=row, layer=layer)
        for row, stacked, holds in _ROWS
        if holds(case.model)
        for name, dims, layer in _tensors(row, stacked, case)
    )


def _tensors(row: str, stacked: str, case: Case) -> list[tuple[str, str, int]]:
    """Name, dims and layer of each tensor that a row of the table is in this case."""
    own = own_dims(stacked, loop=case.loop)
    if own == stacked:
        return [(row, stacked, 0)]
    return [(row.replace("layers.", f"layers.{layer}.", 1), own, layer) for layer in range(dim_sizes(case)["layers"])]


def own_dims(dims: str, *, loop: str) -> str:
    """The dims of one tensor of a layer: stacked over `layers` in a scan, and by itself where layers are unrolled."""
    return dims.removeprefix("layers ") if loop == "unrolled" else dims


def dims_of(model: Model) -> dict[str, str]:
    """The dims of every weight of a model, by name."""
    return {name: dims for name, dims, holds in _ROWS if holds(model)}
