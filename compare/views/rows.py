"""The collectives of one program in a terminal."""

import re
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.judge.whereabouts import where
from compare.program.records import Collective
from compare.views.terminal import console
from compare.views.units import bytes_text, times_text
from meshes.lines import plain


def print_rows(rows: Sequence[Collective], *, out: Console | None = None) -> None:
    """Of each row what it is and moves in one step; then its name, and where it stands."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("scope", "collective", "runs", "payload", "wire", "step"):
        table.add_column(heading, justify="left" if heading in ("scope", "collective") else "right", overflow="fold")
    for row in rows:
        amounts = [bytes_text(amount) for amount in (row.payload_bytes, row.wire_bytes, row.step_wire_bytes)]
        network = "" if row.network == "ici" else f", {row.network}"
        more = [f"{row.name}, {row.dtype}, {row.form}{network}", *([_file(row.source_line)] if row.source_line else ())]
        what = Text(plain(f"{row.kind} @ {row.axes}"))
        what.append("".join(f"\n{plain(line)}" for line in more), style="dim")
        runs = times_text(row.executions, row.executions_are)
        table.add_row(_path(plain(where(row) or row.scope)), what, runs, *amounts)
    out = out or console()
    out.print(table)
    out.print(total_line(rows))


_PATH, _FILE = 26, 36
"""Columns of a framework's path, and of a line of source."""


def _path(words: str) -> str:
    """The framework's path of an operation, where it is long over several lines, each of whole words."""
    lines = [""]
    for part in re.findall(r"[^/]*/|[^/]+", words):
        if lines[-1] and len(lines[-1] + part) > _PATH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _file(source: str) -> str:
    """Of a line of source that is long its file without the folders: the whole path is in `--json`."""
    return source if len(source) <= _FILE else f"…/{source.rpartition('/')[2]}"


def total_line(rows: Sequence[Collective]) -> str:
    """What all rows move in one step, and how sure that is."""
    unknown = sum(row.step_wire_bytes is None for row in rows)
    words = "at least " if unknown else "at most " if any(row.executions_are == "upper-bound" for row in rows) else ""
    total = bytes_text(sum(row.step_wire_bytes or 0 for row in rows))
    never = sum(not row.loops and row.executions == 0 for row in rows)
    more = f"; {unknown} in loops whose count can't be read" * bool(unknown) + f"; {never} never run" * bool(never)
    count = "1 collective moves" if len(rows) == 1 else f"{len(rows)} collectives move"
    return f"{count} {words}{total} a step, mean over devices{more}."
