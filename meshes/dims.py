"""The dims of a tensor, and which axis splits which: a strategy is a table."""

from collections.abc import Mapping
from types import MappingProxyType

from meshes.errors import MeshError

DIMS = (
    "batch",
    "seq",
    "embed",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn",
    "experts",
    "vocab",
    "layers",
    "stages",
    "slots",
)
"""`stages` is the part of the layers that `pp` splits; `slots` are the microbatches that a cache holds."""

Rules = Mapping[str, str | None]

MEGATRON: Rules = MappingProxyType({
    "batch": "dp", "seq": None, "embed": None,
    "heads": "tp", "kv_heads": "tp", "head_dim": None,
    "ffn": "tp", "experts": "ep", "vocab": "tp",
    "layers": None, "stages": "pp", "slots": None,
})  # fmt: skip
"""Column-parallel in, row-parallel out (Shoeybi et al., arXiv 1909.08053); layers in stages."""

OPTIONAL = {"heads": "tp", "kv_heads": "tp", "ffn": "tp", "vocab": "tp"}
"""The rules that a spec file may switch off, by naming no axis."""


def rules(changes: Mapping[str, str | None]) -> Rules:
    """Megatron's table with these rows changed; what no twin can express is refused."""
    for dim, axis in changes.items():
        if dim not in DIMS:
            raise MeshError(f"rules name the dim {dim!r}; the dims are {', '.join(DIMS)}")
        if axis != MEGATRON[dim] and not (axis is None and dim in OPTIONAL):
            right = MEGATRON[dim] or "none"
            either = " or 'none'" if dim in OPTIONAL else ""
            raise MeshError(f"rules split {dim} over {axis or 'none'!r}; offered is {right!r}{either}")
    table = {**MEGATRON, **changes}
    if table["heads"] != table["kv_heads"]:
        raise MeshError("rules split one of heads and kv_heads; attention needs both split, or neither")
    return MappingProxyType(table)


def axes_of(dims: str, *, rules: Rules) -> tuple[str | None, ...]:
    """For each dim of a tensor, named in order, the axis that splits it: `"batch seq ffn"` -> `(dp, None, tp)`."""
    names = dims.split()
    if unknown := sorted(set(names) - set(DIMS) - {"_"}):
        raise MeshError(
            f"a tensor names the dims {', '.join(unknown)}; the dims are {', '.join(DIMS)}, or _ for any other"
        )
    return tuple(None if name == "_" else rules[name] for name in names)
