"""The collectives of one program in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from compare.judge.whereabouts import where
from compare.program.records import Collective
from compare.views.terminal import console, plain
from compare.views.units import bytes_text, times_text


def print_rows(rows: Sequence[Collective], *, out: Console | None = None) -> None:
    """Two lines for each row: what it is and moves in one step; then where it stands."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("scope", "collective", "runs", "payload", "wire", "step"):
        table.add_column(heading, justify="left" if heading in ("scope", "collective") else "right", overflow="fold")
    for row in rows:
        amounts = [bytes_text(amount) for amount in (row.payload_bytes, row.wire_bytes, row.step_wire_bytes)]
        table.add_row(
            plain(where(row) or row.scope),
            plain(f"{row.kind} @ {row.axes}"),
            times_text(row.executions, row.executions_are),
            *amounts,
        )
        network = "" if row.network == "ici" else f", {row.network}"
        table.add_row("", plain(f"  {row.name}, {row.dtype}, {row.form}{network}"), style="dim")
        if row.source_line:
            table.add_row("", plain(f"  {row.source_line}"), style="dim")
    out = out or console()
    out.print(table)
    out.print(total_line(rows))


def total_line(rows: Sequence[Collective]) -> str:
    """What all rows move in one step, and how sure that is."""
    unknown = sum(row.step_wire_bytes is None for row in rows)
    words = "at least " if unknown else "at most " if any(row.executions_are == "upper-bound" for row in rows) else ""
    total = bytes_text(sum(row.step_wire_bytes or 0 for row in rows))
    never = sum(not row.loops and row.executions == 0 for row in rows)
    more = f"; {unknown} in loops whose count can't be read" * bool(unknown) + f"; {never} never run" * bool(never)
    count = "1 collective moves" if len(rows) == 1 else f"{len(rows)} collectives move"
    return f"{count} {words}{total} a step, mean over devices{more}."
