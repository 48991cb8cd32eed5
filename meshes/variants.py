"""Other ways to write the same model: the closed list of changes that both twins know by name.

A variant changes how one part of the step is written, never what it computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from meshes.process.errors import MeshError, NotOfferedError
from meshes.scopes import SCOPES

PIN = "pin:"
"""Begins the names of variants that pin activations, in style `weights`: `pin:layer.mlp.up`."""
STEP = "step"
"""In place of a scope: what lies between the parts of the model, the pipeline's state and the chosen ids."""

_PLACED = {
    "embed": ("ids and looked-up rows", "(rows, 'slots stages batch seq embed')"),
    "layer.attention.qkv": ("queries by heads, keys and values by KV heads", "(q, 'stages batch seq heads head_dim')"),
    "layer.attention.core": ("attention output by heads, the cache", "(attn_out, 'stages batch seq heads head_dim')"),
    "layer.attention.out": ("the stream after attention", "(x, 'stages stream_batch stream_seq embed')"),
    "layer.mlp.up": ("the hidden activations by ffn", "(hidden, 'stages batch seq ffn')"),
    "layer.mlp.down": ("the stream after the feed-forward", "(x, 'stages stream_batch stream_seq embed')"),
    "layer.moe.route": ("tokens and their gates by groups", "(tokens, 'stages groups _ embed')"),
    "layer.moe.dispatch": ("expert slots by experts", "(dispatched, 'stages experts routed _ embed')"),
    "layer.moe.experts": ("hidden activations by experts and ffn", "(hidden, 'stages experts routed _ expert_ffn')"),
    "layer.moe.combine": ("the experts' outputs, by groups", "(expert_out, 'stages groups _ shards embed')"),
    "pipeline.shift": ("the shifted state by stages", "(state, 'stages stream_batch stream_seq embed')"),
    "pipeline.collect": ("the collected ids", "(ids, 'slots batch')"),
    "head": ("last tokens, and logits by the vocabulary", "(logits, 'slots stages batch parts vocab')"),
    "sample": ("the chosen ids", "(ids, 'slots stages batch parts')"),
    STEP: ("the pipeline's state by stages, and the ids", "(state, 'stages stream_batch stream_seq embed')"),
}
"""By scope: what the twins pin there, and the call of one such pin."""


class WritableCase(Protocol):
    """How a step is written: what variants need of a `Case`."""

    @property
    def style(self) -> str: ...
    @property
    def attention(self) -> str: ...
    @property
    def variants(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to write a part of the model otherwise."""

    name: str
    scope: str
    """Where it acts."""
    site: str
    """What it replaces; a program has at most one variant of a site."""
    sentence: str
    """What to do, in the words that follow "it helps to"."""
    code: Mapping[str, str]
    """Arm -> the lines to add or change; arms that are missing do not offer it."""
    phases: tuple[str, ...] = ("prefill", "decode")


def _pin(scope: str) -> Variant:
    what, call = _PLACED[scope]
    return Variant(
        name=f"{PIN}{scope}",
        scope=scope,
        site=f"{PIN}{scope}",
        sentence=f"pin {scope if scope != STEP else 'the state of the step'}: {what}",
        code=dict.fromkeys(("jax", "torchxla"), f"layout.place{call}"),
    )


def _attention(name: str, sentence: str, code: str, *, phases: tuple[str, ...] = ("prefill", "decode")) -> Variant:
    return Variant(
        name=f"attention-{name}",
        scope="layer.attention.core",
        site="attention",
        sentence=sentence,
        code={"torchxla": code},
        phases=phases,
    )


def _cache(name: str, sentence: str, *, jax: str, torchxla: str) -> Variant:
    return Variant(
        name=f"cache-{name}",
        scope="layer.attention.core",
        site="cache",
        sentence=sentence,
        code={"jax": jax, "torchxla": torchxla},
        phases=("decode",),
    )


_GROUPED = "q = q.unflatten(1, (kv_heads, -1)).flatten(2, 3)  # from [batch, heads, seq, head_dim]"
_CALL = "F.scaled_dot_product_attention(q, k, v, attn_mask=mask.repeat(groups, 1))"

_ROWS = (
    _attention(
        "heads-first",
        "call scaled_dot_product_attention with the heads before the batch, the queries of a group side by side",
        f"{_GROUPED}\n"
        "q, k, v = (x.unflatten(0, (ways, -1)).transpose(1, 2) for x in (q, k, v))  # ways: parts of the batch\n"
        f"mixed = {_CALL}.transpose(1, 2).flatten(0, 1)\n"
        "mixed = mixed.unflatten(2, (groups, -1)).flatten(1, 2)",
    ),
    _attention(
        "kv-grouped",
        "give scaled_dot_product_attention the queries of a group side by side, so that K and V are not repeated",
        f"{_GROUPED}\nmixed = {_CALL}.unflatten(2, (groups, -1)).flatten(1, 2)",
        phases=("prefill",),
    ),
    _attention(
        "per-sequence",
        "call scaled_dot_product_attention for one sequence of each device at a time, where it has no batch to merge",
        "each = zip(*(x.unflatten(0, (ways, -1)).unbind(1) for x in (q, k, v)))  # ways: parts of the batch\n"
        "mixed = torch.stack([F.scaled_dot_product_attention(*one, …) for one in each], 1).flatten(0, 1)",
    ),
    _cache(
        "select",
        "put the new token into the cache by a mask over its positions, to read and to write",
        jax="keys = jnp.where((jnp.arange(length) == position)[:, None], token, layer)",
        torchxla="keys = torch.where((torch.arange(length) == position)[:, None], token, layer)",
    ),
    _cache(
        "slice",
        "put the new token into the cache by dynamic_update_slice, to read and to write",
        jax="keys = jax.lax.dynamic_update_slice(layer, token, (0, position, 0))",
        torchxla="UPDATE = xla_op_registry.register('update', lambda x, new, *at: x.dynamic_update_slice(new, at))\n"
        "keys = UPDATE(layer, token, zero, position, zero)",
    ),
    _cache(
        "index",
        "put the new token into the cache by its index, to read and to write",
        jax="keys = layer.at[:, position].set(token)",
        torchxla="keys = layer.index_copy(1, position.reshape(1), token)",
    ),
    _cache(
        "written",
        "write the new token into the cache by dynamic_update_slice, then read what was written",
        jax="cache = jax.lax.dynamic_update_slice(cache, token, (layer, 0, position, 0)); keys = cache[layer]",
        torchxla="cache = UPDATE(cache, token, layer, zero, position, zero); keys = cache.index_select(0, layer)",
    ),
    _cache(
        "written-index",
        "write the new token into the cache by its index, then read what was written",
        jax="layer = layer.at[:, position].set(token)",
        torchxla="layer.index_copy_(2, position, token)  # as StaticCache of Hugging Face transformers",
    ),
    *(_pin(scope) for scope in (*SCOPES, STEP) if scope in _PLACED),
)

VARIANTS: Mapping[str, Variant] = MappingProxyType({row.name: row for row in _ROWS})


def check_variants(case: WritableCase) -> None:
    """Raise `MeshError`, one line, for a name that is not in the list, and for variants that do not go together."""
    if case.variants and case.style == "explicit":
        raise MeshError(f"variant {case.variants[0]} leaves collectives to XLA; style explicit writes them by hand")
    taken: dict[str, str] = {}
    for name in case.variants:
        if name not in VARIANTS:
            raise MeshError(f"unknown variant {name!r}; the variants are {', '.join(VARIANTS)}")
        site = VARIANTS[name].site
        if site in taken:
            raise MeshError(f"variants {taken[site]} and {name} change the same part; name one of them")
        taken[site] = name
        if name.startswith(PIN) and case.style != "weights":
            raise MeshError(f"variant {name} pins what style {case.style} has pinned; use it with style weights")
    if "attention" in taken and case.attention != "idiomatic":
        raise MeshError(f"variant {taken['attention']} goes with attention idiomatic, not {case.attention}")


def pins_scope(case: WritableCase, scope: str) -> bool:
    """Whether activations are pinned in this scope, or with no scope between the parts of the step."""
    return case.style in ("pinned", "typed") or f"{PIN}{scope or STEP}" in case.variants


def check_offered(case: WritableCase, *, arm: str) -> None:
    """Raise `NotOfferedError`, one line, for a variant that this arm's twin has no way to write."""
    for name in case.variants:
        if arm not in VARIANTS[name].code:
            offered = ", ".join(name for name, row in VARIANTS.items() if arm in row.code)
            raise NotOfferedError(f"variant {name} is not offered by {arm}; it offers {offered}")


def find_variant(case: WritableCase, *, site: str) -> str:
    """The variant that a site is written as; empty where it is written as by default."""
    return next((name for name in case.variants if VARIANTS[name].site == site), "")
