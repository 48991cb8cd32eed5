"""The collectives of one program in a terminal."""

import re
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.hlo.collective import Collective
from compare.hlo.scope_key import path_of
from compare.render.terminal import console
from compare.render.units import exact_text, times_text
from meshes.process.one_line import plain

INFERRED = "~"
"""Before what is not a row's own, but that of the nearest instruction."""
LEGEND = f"{INFERRED}: not its own, but the nearest instruction's."

_HEADINGS = (
    ("scope\nop_name", "left"), ("collective\nname, dtype, form\nsource, line of HLO", "left"), ("runs", "right"),
    ("payload\nwire", "right"), ("step", "right"),
)  # fmt: skip


def print_rows(
    rows: Sequence[Collective], *, how: str = "", notes: Sequence[str] = (), out: Console | None = None
) -> None:
    """Of each row what it is and moves in one step; below it its names, and where it stands.  Then the totals.

    how: what to say behind them; notes: what a reader must know beside them.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading, justify in _HEADINGS:
        table.add_column(heading, justify="left" if justify == "left" else "right", overflow="fold")
    for row in rows:
        where = Text(_told(row, "scope", plain(row.scope)))
        if path := plain(path_of(row)):
            where.append("\n" + _path(_told(row, "op_name", path)), style="dim")
        network = "" if row.network == "ici" else f", {row.network}"
        source = [_told(row, "source_line", _file(row.source_line))] if row.source_line else []
        more = [f"{row.name}, {row.dtype}, {row.form}{network}", ", ".join([*source, f"line {row.line}"])]
        what = Text(plain(f"{row.kind} @ {row.axes}"))
        what.append("".join(f"\n{plain(line)}" for line in more), style="dim")
        amounts = f"{exact_text(row.payload_bytes)}\n{exact_text(row.wire_bytes)}"
        table.add_row(
            where, what, times_text(row.executions, row.executions_are), amounts, exact_text(row.step_wire_bytes)
        )
    out = out or console()
    out.print(table)
    if any(row.inferred for row in rows):
        out.print(Text(LEGEND, style="dim"))
    for line in kind_lines(rows):
        out.print(Text(line, no_wrap=True))
    for line in (f"{total_line(rows)} {how}".rstrip(), *(f"Note: {plain(note)}." for note in notes)):
        out.print(Text(line), soft_wrap=True)


def compiled_text(compiled: str) -> str:
    """For what and by what it was compiled, as a sentence; nothing where that is not known."""
    return f"{compiled[0].upper()}{compiled[1:]}." if compiled else ""


def _told(row: Collective, word: str, text: str) -> str:
    return INFERRED * (word in row.inferred) + text


def kind_lines(rows: Sequence[Collective]) -> list[str]:
    """What each kind over each set of axes moves in a step, the most first; nothing where there is one of them."""
    found: dict[str, list[Collective]] = {}
    for row in rows:
        found.setdefault(plain(f"{row.kind} @ {row.axes}"), []).append(row)
    if len(found) < 2:
        return []
    most = sorted(found.items(), key=lambda one: -_step(one[1]))
    told = [(what, str(len(own)), _least(own) + exact_text(_step(own))) for what, own in most]
    wide = [max(len(line[at]) for line in told) for at in range(3)]
    return [f"{what:{wide[0]}}  {count:>{wide[1]}}  {amount:>{wide[2]}}" for what, count, amount in told]


def _least(rows: Sequence[Collective]) -> str:
    """How sure their sum is."""
    unknown = any(row.step_wire_bytes is None for row in rows)
    return "at least " if unknown else "at most " if any(row.executions_are == "upper-bound" for row in rows) else ""


def _step(rows: Sequence[Collective]) -> int:
    return sum(row.step_wire_bytes or 0 for row in rows)


_PATH, _FILE = 26, 30
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
    words = _least(rows)
    total = exact_text(_step(rows))
    never = sum(not row.loops and row.executions == 0 for row in rows)
    more = f"; {unknown} in loops whose count can't be read" * bool(unknown) + f"; {never} never run" * bool(never)
    count = "1 collective moves" if len(rows) == 1 else f"{len(rows)} collectives move"
    return f"{count} {words}{total} a step, mean over devices{more}."
