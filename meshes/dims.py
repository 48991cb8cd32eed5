"""The dims of a tensor, and which axes split which: a strategy is a table."""

from collections.abc import Mapping
from types import MappingProxyType

from meshes.process.errors import MeshError

Rules = Mapping[str, str | None]
"""Dim -> the axes that split it, comma-joined, outermost first; `None`: whole."""

MEGATRON: Rules = MappingProxyType({
    # Activations: inside a block, and between blocks, where they are the residual stream.
    "batch": "dp,ep", "seq": "cp", "embed": None,
    "stream_batch": "dp,ep", "stream_seq": "cp",
    # Ids of a prompt, and keys and values in a cache, by their position.
    "positions": "cp",
    "heads": "tp", "kv_heads": "tp", "head_dim": None,
    "ffn": "tp", "vocab": "tp",
    # A mixture of experts: the router's scores; the experts; groups of tokens that share a capacity, before and after
    # they are sent to their experts; partial sums.
    "choices": None, "experts": "ep", "expert_ffn": "tp", "shared_ffn": "tp",
    "groups": "cp,dp,ep", "routed": "cp,dp", "shards": "tp",
    # The layers of one stage, the stages, the microbatches that a cache holds, the parts that a sequence is cut into.
    "layers": None, "stages": "pp", "slots": None, "parts": "cp",
})  # fmt: skip
"""Column-parallel in, row-parallel out (Shoeybi et al., arXiv 1909.08053); layers in stages; experts over `ep`
(Lepikhin et al., arXiv 2006.16668); sequences over `cp` (Liu et al., arXiv 2310.01889)."""

SEQUENCE_PARALLEL: Rules = MappingProxyType({**MEGATRON, "stream_seq": "cp,tp"})
"""The residual stream is split over `tp`, too (Korthikanti et al., arXiv 2205.05198)."""

DIMS = tuple(MEGATRON)

OPTIONAL = ("heads", "kv_heads", "ffn", "vocab")
"""The rules that a spec file may switch off, by naming no axis."""

_FOLLOW = {"ffn": ("expert_ffn", "shared_ffn", "shards")}
"""Dims that have no rule of their own."""

_EARLIER = {"batch": ("dp",), "seq": (None,)}
"""Rules of cases from before ep and cp -> their equivalents."""


def rules(changes: Mapping[str, str | None]) -> Rules:
    """Megatron's table with these rows changed; what no twin can express is refused.

    `seq = "tp"` is sequence parallelism.
    """
    table = dict(MEGATRON)
    for dim, axis in changes.items():
        if dim not in DIMS:
            raise MeshError(f"rules name the dim {dim!r}; the dims are {', '.join(DIMS)}")
        if (dim, axis) in (("seq", "tp"), ("stream_seq", SEQUENCE_PARALLEL["stream_seq"])):
            table["stream_seq"] = SEQUENCE_PARALLEL["stream_seq"]
        elif axis is None and dim in OPTIONAL:
            table |= dict.fromkeys((dim, *_FOLLOW.get(dim, ())))
        elif axis != table[dim] and axis not in _EARLIER.get(dim, ()):
            either = " or 'none'" if dim in OPTIONAL else " or 'tp'" if dim == "seq" else ""
            raise MeshError(
                f"rules split {dim} over {axis or 'none'!r}; offered is {MEGATRON[dim] or 'none'!r}{either}"
            )
    if table["heads"] != table["kv_heads"]:
        raise MeshError("rules split one of heads and kv_heads; attention needs both split, or neither")
    if is_sequence_parallel(table) and not (table["heads"] and table["ffn"]):
        raise MeshError("rules split seq over 'tp', but not heads and ffn; sequence parallelism needs both split")
    return MappingProxyType(table)


def is_sequence_parallel(rules: Rules) -> bool:
    """Whether `tp` splits the residual stream, too."""
    return rules["stream_seq"] == SEQUENCE_PARALLEL["stream_seq"]


def axes_of(dims: str, *, rules: Rules) -> tuple[str | tuple[str, ...] | None, ...]:
    """For each dim of a tensor, named in order, what splits it: `"batch seq ffn"` -> `((dp, ep), cp, tp)`.

    One axis as its name, several as a tuple, outermost first; `None`: whole.
    """
    names = dims.split()
    if unknown := sorted(set(names) - set(DIMS) - {"_"}):
        raise MeshError(
            f"a tensor names the dims {', '.join(unknown)}; the dims are {', '.join(DIMS)}, or _ for any other"
        )
    return tuple(_axes(None if name == "_" else rules[name]) for name in names)


def _axes(split: str | None) -> str | tuple[str, ...] | None:
    return tuple(split.split(",")) if split and "," in split else split
