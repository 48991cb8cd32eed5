"""The cost of one instruction on a device: the compiler's estimated cycles, or bytes through memory.

The larger of the two counts.  But the compiler underestimates the memory bandwidth: where its estimate is no more than
its own time for the bytes moved, only the bytes count.  It also assumes that the windows of a loop are fetched one
after the other, without overlap.
"""

import re
from collections.abc import Iterator
from math import prod

from compare.hlo.collective import COLLECTIVE_KINDS
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.shapes import Array, Shape, arrays
from compare.timing.model.hardware import Hardware

FREE = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
    "opt-barrier", "optimization-barrier", "add-dependency", "domain",
})  # fmt: skip
"""Opcodes that only name existing values: nothing runs."""
FREE_CALLS = frozenset({
    "AllocateBuffer", "ConcatBitcast", "Sharding", "PrepareAsyncCallStart", "PrepareAsyncCallDone", "SliceId",
    "AssumeGatherIndicesInBound",
})  # fmt: skip

MEMORY_BOUND = 1.25
"""An estimate up to this multiple of the compiler's own time for the bytes is memory-bound."""

_MATRIX_UNIT = "COST_MODEL_TYPE_CLASSIC"
"""Marks the estimates of matmuls, whose memory bandwidth is realistic."""
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_WINDOWS = re.compile(r'"iteration_bounds":\[((?:"\d+",?)+)\]')
_FLOPS = re.compile(r'"cost_estimate":\{"flops":"?(\d+)')
"""The cost estimate by a kernel's author."""
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_SPACE = re.compile(r"[a-z]\w*\[[^\]]*\](?:\{[^}]*?(?:S\((\d+)\))?\})?")
_COMMENT = re.compile(r"/\*.*?\*/")
_THROUGH = {"bitcast", "convert", "reshape", "copy", "transpose"}
"""Inside a fusion these pass an operand through; their users read it."""
_NO_ESTIMATE = 2**63 - 1
"""The compiler's value for a missing estimate, as for the SparseCore's work."""


class InstructionCosts:
    """Durations in ns.  Caches how many bytes each fused computation reads of its parameters."""

    def __init__(self, hardware: Hardware):
        self._hardware = hardware
        self._read: dict[Instruction, int | None] = {}

    def compute_ns(self, item: Instruction) -> float:
        """Time on the TensorCore."""
        if is_free(item):
            return 0.0
        cycles, moved = self._cycles(item), self.memory_bytes(item)
        memory_ns = moved / self._hardware.hbm_bytes_per_ns
        only_moves = cycles <= MEMORY_BOUND * moved * self._hardware.copy_cycles_per_byte
        if only_moves and _MATRIX_UNIT not in item.text:
            return max(memory_ns, self._kernel_ns(item))
        return max(cycles * self._hardware.cycle_ns, memory_ns)

    def _cycles(self, item: Instruction) -> float:
        """The estimated cycles without those between a loop's windows: each window is fetched during the previous."""
        cycles = estimated_cycles(item) or 0
        bounds = None if _MATRIX_UNIT in item.text else _WINDOWS.search(item.text)
        windows = prod(map(int, re.findall(r"\d+", bounds[1]))) if bounds else 1
        between = (windows - 1) * self._hardware.window_cycles
        # A smaller estimate counts otherwise: a fixed number per window.
        return cycles - between if between < cycles else cycles

    def _kernel_ns(self, item: Instruction) -> float:
        match = _FLOPS.search(item.text) if item.opcode == "custom-call" else None
        return int(match[1]) / self._hardware.flops_per_ns if match else 0.0

    def memory_ns(self, item: Instruction) -> float:
        """Time in the device's memory."""
        return 0.0 if is_free(item) else self.memory_bytes(item) / self._hardware.hbm_bytes_per_ns

    def copy_ns(self, start: Instruction) -> float:
        """Time of an asynchronous local copy, if the memory is otherwise idle."""
        return copied_bytes(start) / self._hardware.hbm_bytes_per_ns

    def memory_bytes(self, item: Instruction) -> int:
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
    if item.opcode != "custom-call":
        return item.opcode in FREE
    match = _TARGET.search(item.text)
    return bool(match and match[1] in FREE_CALLS)


def is_unknown(item: Instruction) -> bool:
    """Whether it is a kernel without any cost estimate."""
    kernel = item.opcode == "custom-call" and not is_free(item)
    return kernel and estimated_cycles(item) is None and not _FLOPS.search(item.text)


def estimated_cycles(item: Instruction) -> int | None:
    """The compiler's estimate, or `None`."""
    match = _CYCLES.search(item.text)
    return int(match[1]) if match and int(match[1]) != _NO_ESTIMATE else None


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
