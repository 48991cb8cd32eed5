"""The one table of weights, for both twins: names, dims, shapes, and where a checkpoint keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.errors import MeshError

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSpec:
    """One weight of the model, stacked over the layers of a stage and over the stages."""

    name: str
    """Its path in the modules of either twin, like `layers.attention.q`."""
    dims: str
    """`layers` are those of one stage: layer number = stage · (layers of a stage) + layer."""
    shape: tuple[int, ...]
    source: str
    """Its name in a Hugging Face checkpoint; `{layer}` is the layer's number."""
    transposed: bool
    """Whether the checkpoint keeps it as [out, in], as `torch.nn.Linear` does."""


_ROWS = (
    ("embedding.table", "vocab embed", "model.embed_tokens.weight", False),
    ("layers.attention_norm.scale", "layers stages embed", "model.layers.{layer}.input_layernorm.weight", False),
    ("layers.attention.q", "layers stages embed heads head_dim", "model.layers.{layer}.self_attn.q_proj.weight", True),
    ("layers.attention.k", "layers stages embed kv_heads head_dim", "model.layers.{layer}.self_attn.k_proj.weight",
     True),
    ("layers.attention.v", "layers stages embed kv_heads head_dim", "model.layers.{layer}.self_attn.v_proj.weight",
     True),
    ("layers.attention.o", "layers stages heads head_dim embed", "model.layers.{layer}.self_attn.o_proj.weight", True),
    ("layers.mlp_norm.scale", "layers stages embed", "model.layers.{layer}.post_attention_layernorm.weight", False),
    ("layers.mlp.gate", "layers stages embed ffn", "model.layers.{layer}.mlp.gate_proj.weight", True),
    ("layers.mlp.up", "layers stages embed ffn", "model.layers.{layer}.mlp.up_proj.weight", True),
    ("layers.mlp.down", "layers stages ffn embed", "model.layers.{layer}.mlp.down_proj.weight", True),
    ("norm.scale", "embed", "model.norm.weight", False),
    ("head.table", "embed vocab", "lm_head.weight", True),
)  # fmt: skip


def dim_sizes(case: Case) -> dict[str, int]:
    """The size of each dim that a weight or an activation names."""
    model = case.model
    named = {dim: getattr(model, dim) for dim in ("vocab", "embed", "ffn", "heads", "kv_heads", "head_dim")}
    return named | {
        "layers": model.layers // case.mesh.pp,
        "stages": case.mesh.pp,
        "slots": case.microbatches,
        "batch": case.batch // case.microbatches,
        "seq": case.seq,
    }


def weights(case: Case) -> tuple[WeightSpec, ...]:
    """Every weight of the case's model; a tied head is the embedding and has no row."""
    sizes = dim_sizes(case)
    return tuple(
        WeightSpec(name=name, dims=dims, shape=tuple(sizes[dim] for dim in dims.split()), source=source,
                   transposed=transposed)
        for name, dims, source, transposed in _ROWS
        if not (case.model.tied and name == "head.table")
    )  # fmt: skip


def from_huggingface(state: Mapping[str, Array], *, case: Case) -> dict[str, Array]:
    """A Llama checkpoint's arrays, stacked as this case's twins hold them.  Raises `MeshError` on a missing name."""
    return {spec.name: _stacked(spec, state, case=case) for spec in weights(case)}


def _stacked(spec: WeightSpec, state: Mapping[str, Array], *, case: Case) -> Array:
    if not spec.dims.startswith("layers stages"):
        return _one(state, spec.source, shape=spec.shape, transposed=spec.transposed)
    layers, stages, *shape = spec.shape
    rows = [
        _one(state, spec.source.format(layer=layer), shape=tuple(shape), transposed=spec.transposed)
        for layer in range(case.model.layers)
    ]
    # The checkpoint counts layers through the stages: stage is the outer digit, layer the inner.
    return np.ascontiguousarray(np.stack(rows).reshape(stages, layers, *shape).swapaxes(0, 1))


def _one(state: Mapping[str, Array], name: str, *, shape: tuple[int, ...], transposed: bool) -> Array:
    if name not in state:
        raise MeshError(f"the checkpoint has no {name!r}; it has {len(state)} arrays, like {next(iter(state), 'none')}")
    array = np.asarray(state[name])
    if array.size != int(np.prod(shape)):
        raise MeshError(f"{name} of the checkpoint has shape {array.shape}; the model's {shape} has another size")
    return (array.T if transposed else array).reshape(shape)
