"""The cost of one instruction on a device: the compiler's estimated cycles, or bytes through memory.

The larger of the two counts.  But the compiler underestimates the memory bandwidth: where its estimate is no more than
its own time for the bytes moved, only the bytes count.  It also assumes that the windows of a loop are fetched one
after the other, without overlap.
"""

import re
from math import prod

from compare.hlo.text.instruction import Instruction
from compare.schedule.hardware import Hardware
from compare.schedule.work.arithmetic import ArithmeticCounts, stated_flops
from compare.schedule.work.memory import MemoryTraffic, copied_bytes, is_free

MEMORY_BOUND = 1.25
"""An estimate up to this multiple of the compiler's own time for the bytes is memory-bound."""

_MATRIX_UNIT = "COST_MODEL_TYPE_CLASSIC"
"""Marks the estimates of matmuls, whose memory bandwidth is realistic."""
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_WINDOWS = re.compile(r'"iteration_bounds":\[((?:"\d+",?)+)\]')
_NO_ESTIMATE = 2**63 - 1
"""The compiler's value for a missing estimate, as for the SparseCore's work."""


class InstructionCosts:
    """Durations in ns."""

    def __init__(self, hardware: Hardware):
        self._hardware = hardware
        self._memory, self._arithmetic = MemoryTraffic(), ArithmeticCounts()

    def compute_ns(self, item: Instruction) -> float:
        """Time on the TensorCore."""
        if is_free(item):
            return 0.0
        cycles, moved = self._cycles(item), self.memory_bytes(item)
        memory_ns = moved / self._hardware.hbm_bytes_per_ns
        only_moves = cycles <= MEMORY_BOUND * moved * self._hardware.copy_cycles_per_byte
        if only_moves and _MATRIX_UNIT not in item.text:
            return max(memory_ns, self._kernel_ns(item))
        return max(cycles * self._hardware.cycle_ns / self._speed(item, moved), memory_ns)

    def _speed(self, item: Instruction, moved: int) -> float:
        """How much faster an estimate passes than at nominal speeds.

        The estimate of a product holds its reads, too: it keeps its ratio to the longer of arithmetic and memory.
        """
        core, memory = self._hardware.core_speed, self._hardware.memory_speed
        if core == memory == 1 or _MATRIX_UNIT not in item.text:
            return core
        flops_ns = self._arithmetic.of(item).matrix_flops * core / self._hardware.flops_per_ns
        bytes_ns = moved * memory / self._hardware.hbm_bytes_per_ns
        bound = max(flops_ns, bytes_ns)
        return bound / max(flops_ns / core, bytes_ns / memory) if bound else core

    def _cycles(self, item: Instruction) -> float:
        """The estimated cycles without those between a loop's windows: each window is fetched during the previous."""
        cycles = estimated_cycles(item) or 0
        bounds = None if _MATRIX_UNIT in item.text else _WINDOWS.search(item.text)
        windows = prod(map(int, re.findall(r"\d+", bounds[1]))) if bounds else 1
        between = (windows - 1) * self._hardware.window_cycles
        # A smaller estimate counts otherwise: a fixed number per window.
        return cycles - between if between < cycles else cycles

    def _kernel_ns(self, item: Instruction) -> float:
        flops = stated_flops(item) if item.opcode == "custom-call" else None
        return (flops or 0) / self._hardware.flops_per_ns

    def memory_ns(self, item: Instruction) -> float:
        """Time in the device's memory."""
        return 0.0 if is_free(item) else self.memory_bytes(item) / self._hardware.hbm_bytes_per_ns

    def copy_ns(self, start: Instruction) -> float:
        """Time of an asynchronous local copy, if the memory is otherwise idle."""
        return copied_bytes(start) / self._hardware.hbm_bytes_per_ns

    def memory_bytes(self, item: Instruction) -> int:
        """Bytes read from and written to the device's memory (HBM)."""
        return self._memory.of(item)


def is_unknown(item: Instruction) -> bool:
    """Whether it is a kernel without any cost estimate."""
    kernel = item.opcode == "custom-call" and not is_free(item)
    return kernel and estimated_cycles(item) is None and stated_flops(item) is None


def estimated_cycles(item: Instruction) -> int | None:
    """The compiler's estimate, or `None`."""
    match = _CYCLES.search(item.text)
    return int(match[1]) if match and int(match[1]) != _NO_ESTIMATE else None
