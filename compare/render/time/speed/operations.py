"""The longest operations of a step, as words and as a table."""

from collections.abc import Sequence

from compare.render.blocks import Cell, Column, Row, Table, amount_cell, number_columns
from compare.render.time.timing_section import ProgramTiming
from compare.render.units import UNKNOWN, bytes_text, flops_text, list_text, time_text
from compare.report.model.timing import Number, Operation

AMOUNTS = ("time", "bytes", "FLOPs", "bound")
COMMUNICATION, COPY = "communication", "copy"
_NAMED_BY_PATH = ("fusion", "custom-call")
"""Opcodes that do not tell what is computed: the framework's name of the operation does."""


def operations_table(phase: str, timing: ProgramTiming) -> Table:
    """One row for each; below it where it stands."""
    return Table(
        name=f"Longest operations of {phase}, {timing.title} {timing.cell}",
        style="operations",
        columns=(
            Column(heading=timing.title, code=timing.cell, prose=True),
            *number_columns(*AMOUNTS),
        ),
        rows=tuple(map(_row, timing.section.operations or ())),
    )


def _row(operation: Operation) -> Row:
    time, moved, flops, bound = operation_amounts(operation)
    place = (operation.scope, list_text(operation.tensors), operation.source_line or "")
    return Row(
        name=operation_words(operation),
        cells=(
            Cell(time),
            amount_cell(moved, moved_bytes(operation)),
            amount_cell(flops, operation.matrix_flops),
            Cell(bound),
        ),
        note=", ".join(filter(None, place)),
    )


def operation_amounts(operation: Operation) -> tuple[str, str, str, str]:
    """In the order of `AMOUNTS`."""
    moved, flops = bytes_text(moved_bytes(operation)), flops_text(operation.matrix_flops)
    return time_text(operation.time_ns), moved, flops, operation.bound or UNKNOWN


def moved_bytes(operation: Operation) -> Number:
    """Through memory; of a communication its payload."""
    return operation.payload_bytes if operation.role == COMMUNICATION else operation.memory_bytes


def operation_words(operation: Operation) -> str:
    """`64 × copy of bf16[32,1,8,1152,128]`, `80 × fusion (dot_general) of bf16[2,3584]`."""
    path = f" ({operation.path})" if operation.path and operation.opcode in _NAMED_BY_PATH else ""
    waits = "wait for " if operation.role == COPY else ""
    shape = f" of {operation.shape}" if operation.shape else ""
    return f"{_count(operation.executions)} × {waits}{operation.opcode}{path}{shape}"


def operation_sentence(operation: Operation) -> str:
    """The same with what it reads, how long it takes and what it moves: `…, cache.k, 5.30 ms, 7.25 GB`."""
    moved = bytes_text(operation.memory_bytes) if operation.memory_bytes else ""
    parts = (operation_words(operation), list_text(operation.tensors), time_text(operation.time_ns), moved)
    return ", ".join(filter(None, parts))


def _count(executions: Number) -> str:
    if executions is None:
        return "?"
    return f"{executions:,}" if isinstance(executions, int) else f"{executions:.3g}"


def computing(operations: Sequence[Operation] | None) -> list[Operation]:
    """Those that are compute."""
    return [operation for operation in operations or () if operation.role != COMMUNICATION]
