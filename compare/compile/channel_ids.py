"""A channel for each collective of a program, so that it can be told from the others whatever becomes of its name.

JAX gives all collectives of a `shard_map` one channel.  A program that is compiled again with a channel for each comes
out the same but for those numbers (what the compiler merges because even the channels were equal, it then leaves
apart: whoever uses the second program for the first must see that they are the same).
"""

from collections import Counter
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

_CHANNEL = "channel_handle"
_COLLECTIVES = frozenset({
    "stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.all_to_all", "stablehlo.collective_broadcast",
    "stablehlo.collective_permute", "stablehlo.reduce_scatter",
})  # fmt: skip


def shared(module: Any) -> bool:
    """Whether two collectives have one channel."""
    found = Counter(_handle(op).handle for op in _with_channels(module) if op.name in _COLLECTIVES)
    return any(times > 1 for times in found.values())


def part(module: Any) -> None:
    """Give each collective a channel of its own, in place: above those that are there."""
    ops = _with_channels(module)
    number = max((_handle(op).handle for op in ops), default=0)
    for op in ops:
        if op.name in _COLLECTIVES:
            number += 1
            kind = _handle(op).channel_type
            op.attributes[_CHANNEL] = stablehlo.ChannelHandle.get(number, kind, context=op.context)


def _handle(op: Any) -> Any:
    return stablehlo.ChannelHandle(op.attributes[_CHANNEL])


def _with_channels(module: Any) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if _CHANNEL in op.attributes:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found
