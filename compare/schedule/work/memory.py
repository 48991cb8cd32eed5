"""Bytes that one instruction moves through the device's memory (HBM); what lies in on-chip memory moves none.

A fusion that slices an operand reads the slice, one that updates in place writes the update.
"""

import re
from collections.abc import Iterator

from compare.hlo.collective import COLLECTIVE_KINDS
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.shapes import Array, Shape, arrays

FREE = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "partition-id",
        "replica-id",
        "opt-barrier",
        "optimization-barrier",
        "add-dependency",
        "domain",
    }
)
"""Opcodes that only name existing values: nothing runs."""
FREE_CALLS = frozenset(
    {
        "AllocateBuffer",
        "ConcatBitcast",
        "Sharding",
        "PrepareAsyncCallStart",
        "PrepareAsyncCallDone",
        "SliceId",
        "AssumeGatherIndicesInBound",
    }
)

_SPACE = re.compile(r"[a-z]\w*\[[^\]]*\](?:\{[^}]*?(?:S\((\d+)\))?\})?")
_COMMENT = re.compile(r"/\*.*?\*/")
_THROUGH = {"bitcast", "convert", "reshape", "copy", "transpose"}
"""Inside a fusion these pass an operand through; their users read it."""


class MemoryTraffic:
    """Counts instructions; caches how many bytes each fused computation reads of its parameters."""

    def __init__(self) -> None:
        self._read: dict[Instruction, int | None] = {}

    def of(self, item: Instruction) -> int:
        """Bytes read from and written to the device's memory (HBM); values in on-chip memory count 0."""
        if item.opcode == "fusion" and item.callees:
            return self._fusion_bytes(item, item.callees[0])
        if item.opcode in ("dynamic-slice", "slice", "gather"):
            return _bytes(item) + min(_bytes(item.operand(0)), logical_bytes(item.shape))
        if item.opcode == "dynamic-update-slice":
            update = item.operand(1)
            return _bytes(update) + min(_bytes(item), logical_bytes(update.shape))
        return _bytes(item) + sum(map(_bytes, dict.fromkeys(item.operands)))

    def _fusion_bytes(self, item: Instruction, inside: Computation) -> int:
        total = 0
        for index, operand in enumerate(item.operands):
            num_bytes = _bytes(operand)
            if num_bytes and index in inside.parameters:
                read = self._read_of(inside.parameters[index])
                num_bytes = num_bytes if read is None else min(num_bytes, read)
            total += num_bytes
        return total + _written(item, inside.root)

    def _read_of(self, item: Instruction) -> int | None:
        """Bytes of a value that a fused computation reads; `None` for all of it."""
        if item not in self._read:
            self._read[item] = None
            self._read[item] = self._find_read(item)
        return self._read[item]

    def _find_read(self, item: Instruction) -> int | None:
        total = 0
        for user in item.users:
            if user.opcode in ("dynamic-slice", "slice", "gather") and user.operand(0) is item:
                part: int | None = logical_bytes(user.shape)
            elif user.opcode in ("dynamic-update-slice", "scatter") and user.operand(0) is item:
                part = 0  # updated in place
            elif _in_flight(user) or (user.opcode == "tuple" and _carries(user.computation)):
                part = 0  # a buffer of the collective in flight beside this fusion
            elif user.opcode == "fusion" and user.callees:
                part = self._read_in_call(item, user)
            elif user.opcode in _THROUGH and user is not user.computation.root:
                part = self._read_of(user)
            else:
                part = None
            if part is None:
                return None
            total += part
        return total

    def _read_in_call(self, item: Instruction, call: Instruction) -> int | None:
        inside = call.callees[0]
        parts = [
            self._read_of(inside.parameters[index])
            for index, operand in enumerate(call.operands)
            if operand is item and index in inside.parameters
        ]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def is_free(item: Instruction) -> bool:
    """Whether it costs nothing."""
    return item.target in FREE_CALLS if item.opcode == "custom-call" else item.opcode in FREE


def copied_bytes(start: Instruction) -> int:
    """Bytes that a started copy or slice moves through the device's memory: read, written, or both."""
    shape = start.shape
    if isinstance(shape, Array) or len(shape) < 2:
        raise start.error(f"a {start.opcode} without the tuple of its buffers")
    spaces = _spaces(start.shape_text)
    # A copy's shape: result, source, context; any other's: operands, result, context.
    moved = logical_bytes(shape[0] if start.opcode == "copy-start" else shape[1])
    first = len(arrays(shape[0]))
    ends = (spaces[0], spaces[first]) if first < len(spaces) else (spaces[0],)
    return moved * max(1, sum(space == 0 for space in ends))


def logical_bytes(shape: Shape) -> int:
    return sum(array.num_bytes for array in arrays(shape))


def _spaces(text: str) -> list[int]:
    """The memory space of each array of a shape; 0 is HBM."""
    return [int(match[1] or 0) for match in _SPACE.finditer(_COMMENT.sub("", text))]


def _in_memory(item: Instruction) -> Iterator[tuple[Array, bool]]:
    yield from ((array, space == 0) for array, space in zip(arrays(item.shape), _spaces(item.shape_text), strict=True))


def _bytes(item: Instruction) -> int:
    """Bytes of its result arrays in the device's memory."""
    return sum(array.num_bytes for array, in_memory in _in_memory(item) if in_memory)


def _written(item: Instruction, root: Instruction) -> int:
    """Bytes that a fusion writes: for in-place updates only the update, for a collective's buffers nothing."""
    if _in_flight(root):
        return 0
    parts = list(root.operands) if root.opcode == "tuple" else [root]
    results = list(_in_memory(item))
    if len(parts) != len(results):
        return sum(array.num_bytes for array, in_memory in results if in_memory)
    return sum(
        _change(part, array.num_bytes) for part, (array, in_memory) in zip(parts, results, strict=True) if in_memory
    )


def _change(root: Instruction, num_bytes: int) -> int:
    while root.opcode in ("bitcast", "get-tuple-element"):
        root = root.operand(0)
    if _in_flight(root) or (root.opcode == "parameter" and _carries(root.computation)):
        return 0
    if root.opcode == "dynamic-update-slice":
        return min(num_bytes, logical_bytes(root.operand(1).shape))
    if root.opcode == "fusion" and root.callees:
        return _change(root.callees[0].root, num_bytes)
    return num_bytes


def _in_flight(item: Instruction) -> bool:
    """Whether it is the collective of an asynchronous fusion, or the mark of its start or end.

    The links read and write its buffers; the fusions of the chain only pass them on.
    """
    return item.opcode in COLLECTIVE_KINDS or (item.opcode == "custom-call" and "AsyncCollective" in item.text)


def _carries(inside: Computation) -> bool:
    """Whether a collective is in flight beside a fused computation."""
    return "AsyncCollectiveStart" in inside.module.text and any(map(_in_flight, inside))
