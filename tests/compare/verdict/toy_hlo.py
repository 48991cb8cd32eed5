"""Small compiled programs, written out: each collective with something computed as operand."""

from collections.abc import Sequence

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read

AXES = {"data": 2, "tensor": 4}
OVER = {"tensor": "{{0,1,2,3},{4,5,6,7}}", "data": "{{0,4},{1,5},{2,6},{3,7}}"}
RING = {
    "tensor": "{{0,1},{1,2},{2,3},{3,0},{4,5},{5,6},{6,7},{7,4}}",
    "back": "{{0,3},{1,0},{2,1},{3,2},{4,7},{5,4},{6,5},{7,6}}",
}
HEAD = """HloModule toy, is_scheduled=true, num_partitions=8

add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] add(a, b)
}
"""


def wire(kind: str, shape: str, *, over: str = "tensor", scope: str = "layer.mlp.down", result: str = "") -> str:
    """One collective of an operand of this shape; `result` where it makes another."""
    rest = f'metadata={{op_name="jit(step)/{scope}/dot_general" source_file="model.py" source_line=7}}'
    if kind == "collective-permute":
        return f"{shape} {result or shape} {kind}(X), channel_id=1, source_target_pairs={RING[over]}, {rest}"
    adds = ", to_apply=add" if kind in ("all-reduce", "reduce-scatter") else ""
    dims = ", dimensions={0}" if kind in ("all-gather", "reduce-scatter") else ""
    groups = f"channel_id=1, replica_groups={OVER[over]}{dims}, use_global_device_ids=true{adds}"
    return f"{shape} {result or shape} {kind}(X), {groups}, {rest}"


def program(*wires: str) -> str:
    """The text of a program with these collectives, in this order."""
    lines = []
    for number, wire in enumerate(wires):
        shape, result_shape, rest = wire.split(" ", 2)
        lines.append(f"  p{number} = {shape} parameter({number})")
        lines.append(f"  x{number} = {shape} negate(p{number})")
        lines.append(f"  c{number} = {result_shape} {rest.replace('(X)', f'(x{number})', 1)}")
    return "\n".join([HEAD, "ENTRY main {", *lines, "  ROOT end = bf16[] constant(0)", "}", ""])


def rows(*wires: str, axes: dict[str, int] | None = None) -> Sequence[Collective]:
    return collectives(read(program(*wires)), AXES if axes is None else axes)


SUM = wire("all-reduce", "bf16[256,1024]")
GATHER = wire("all-gather", "bf16[64,1024]", result="bf16[256,1024]")
SCATTER = wire("reduce-scatter", "bf16[256,1024]", result="bf16[64,1024]")
HOP = wire("collective-permute", "bf16[64,1024]")
BACK = wire("collective-permute", "bf16[64,1024]", over="back")
