"""The modelled step of one program in a terminal: where its time goes, and its longest operations."""

from collections.abc import Sequence

from rich.console import Console

from compare.metrics.work import UNKNOWN_SCOPE
from compare.render.blocks import Cell, Column, Row, Table, number_columns
from compare.render.collectives_table import local_source
from compare.render.terminal import console, print_blocks
from compare.render.time.profile_summary import print_trace
from compare.render.time.speed.operations import AMOUNTS, operation_amounts, operation_words
from compare.render.units import list_text
from compare.report.model.timing import Operation
from compare.user_program.step_time import StepTime


def print_step(step: StepTime, *, out: Console | None = None) -> None:
    """Print step, compute and exposed communication, the communication by axes and kind, then the operations."""
    out = out or console()
    print_trace(step.summary, step.by_kind, out=out)
    if step.operations:
        out.print()
        print_blocks([operations_table(step.operations)], out=out, details=False)


def operations_table(operations: Sequence[Operation]) -> Table:
    """One row for each; below it what it reads, and where it stands."""
    return Table(
        name="Longest operations",
        columns=(Column(heading="longest operations", prose=True), *number_columns(*AMOUNTS)),
        rows=tuple(
            Row(name=operation_words(row), cells=tuple(map(Cell, operation_amounts(row))), note=operation_place(row))
            for row in operations
        ),
    )


def operation_place(operation: Operation) -> str:
    """What it reads, its scope and its line, as far as they are known."""
    scope = "" if operation.scope == UNKNOWN_SCOPE else operation.scope
    return ", ".join(filter(None, (scope, list_text(operation.tensors), local_source(operation.source_line or ""))))
