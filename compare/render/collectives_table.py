"""The collectives of one program in a terminal."""

import os
import re
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.hlo.collective import Collective
from compare.render.folded_rows import FOLDED, fold_rows
from compare.render.terminal import console
from compare.render.training_parts import align_amounts, training_lines
from compare.render.units import exact_text
from compare.report.grouping import group_by
from meshes.process.one_line import plain

INFERRED = "≈"
"""Marks a value that is inferred from the nearest instruction."""
CALLED_FROM = "←"
"""Before the call that tells rows of one source line apart."""
LEGEND = f"{INFERRED}: not its own, but the nearest instruction's."

_HEADINGS = (
    ("scope\nop_name", "left"),
    ("collective\nname, dtype, form\nsource, line of HLO", "left"),
    ("count", "right"),
    ("payload\nwire", "right"),
    ("step", "right"),
)


def print_rows(
    rows: Sequence[Collective],
    *,
    how: str = "",
    notes: Sequence[str] = (),
    unfolded: bool = False,
    each: str = "--all shows each",
    out: Console | None = None,
) -> None:
    """Print the rows with their bytes per step, their names and their source line, then the totals.

    how: text behind the totals; notes: printed below them; unfolded: rows that are alike each by itself, else in one
    line, with where `each` of them is to be seen.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading, justify in _HEADINGS:
        table.add_column(heading, justify="left" if justify == "left" else "right", overflow="fold")
    folded = fold_rows(rows, unfolded=unfolded)
    for entry in folded:
        row = entry.first
        names = Text(mark_inferred(row, "scope", plain(row.scope)))
        if path := plain(entry.path):
            names.append("\n" + _path(mark_inferred(row, "op_name", path)), style="dim")
        network = "" if row.network == "ici" else f", {row.network}"
        source = mark_inferred(row, "source_line", short_source(row.source_line or ""))
        place = ", ".join(filter(None, (source, f"line {row.line}")))
        more = [f"{entry.name}, {row.dtype}, {row.form}{network}", place, *told_apart(row)]
        what = Text(plain(f"{row.kind} over {row.axes}"))
        what.append("".join(f"\n{plain(line)}" for line in more), style="dim")
        table.add_row(names, what, entry.times, f"{entry.payload}\n{entry.wire}", exact_text(entry.step_wire_bytes))
    out = out or console()
    out.print(table)
    if any(row.inferred for row in rows):
        out.print(Text(LEGEND, style="dim"))
    if any(entry.is_folded for entry in folded):
        out.print(Text(f"{FOLDED}; {each}.", style="dim"), soft_wrap=True)
    for line in (*kind_lines(rows), *training_lines(rows)):
        out.print(Text(line, no_wrap=True))
    for line in (f"{total_line(rows)} {how}".rstrip(), *(f"Note: {plain(note)}." for note in notes)):
        out.print(Text(line), soft_wrap=True)


def told_apart(row: Collective) -> list[str]:
    """What tells it from rows of the same source line: the call that only it has.

    Of several tensors in one collective, which has the names of one of them: also what most of the bytes are, if that
    is another.
    """
    caller = [f"{CALLED_FROM} {short_source(row.caller)}"] if row.caller else []
    largest = max(row.operands, key=lambda operand: operand.payload_bytes, default=None)
    if largest is None or not largest.op_name or largest.op_name == row.op_name:
        return caller
    place = short_source(largest.source_line) if largest.source_line else ""
    last = largest.op_name.rpartition("/")[0].rpartition("/")[2] or largest.op_name
    return [*caller, f"{exact_text(largest.payload_bytes)} of it {', '.join(filter(None, (last, place)))}"]


def compiled_text(compiled: str) -> str:
    """Target and compiler, as a sentence; empty where unknown."""
    return f"{compiled[0].upper()}{compiled[1:]}." if compiled else ""


def mark_inferred(row: Collective, word: str, text: str) -> str:
    """Its `scope`, `op_name` or `source_line`, with the mark of one that is the nearest instruction's."""
    return INFERRED * (word in row.inferred) + text if text else ""


def kind_lines(rows: Sequence[Collective]) -> list[str]:
    """Bytes per step of each kind and axes, the most first; empty if there is only one."""
    by_kind = group_by(rows, lambda row: plain(f"{row.kind} over {row.axes}"))
    if len(by_kind) < 2:
        return []
    ordered = sorted(by_kind.items(), key=lambda item: -_step(item[1]))
    return align_amounts(
        [(kind, str(len(members)), _bound_words(members) + exact_text(_step(members))) for kind, members in ordered]
    )


def _bound_words(rows: Sequence[Collective]) -> str:
    """The qualifier of their sum: `at least `, `at most ` or empty."""
    unknown = any(row.step_wire_bytes is None for row in rows)
    return "at least " if unknown else "at most " if any(row.executions_are == "upper-bound" for row in rows) else ""


def _step(rows: Sequence[Collective]) -> int:
    return sum(row.step_wire_bytes or 0 for row in rows)


_PATH, _FILE = 26, 30
"""Characters of a framework's path, and of a source line."""


def _path(words: str) -> str:
    """The framework's path of an operation, broken at slashes."""
    lines = [""]
    for part in re.findall(r"[^/]*/|[^/]+", words):
        if lines[-1] and len(lines[-1] + part) > _PATH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def local_source(source: str) -> str:
    """A source line, its path shortened to the working directory where it lies below that."""
    try:
        return source.removeprefix(os.path.join(os.getcwd(), ""))
    except FileNotFoundError:  # the working directory was removed
        return source


def short_source(source: str) -> str:
    """The same; a long one without its folders (`--json` has the full path)."""
    local = local_source(source)
    return local if len(local) <= _FILE else f"…/{local.rpartition('/')[2]}"


def total_line(rows: Sequence[Collective]) -> str:
    """The total bytes per step, and what is not counted."""
    unknown = sum(row.step_wire_bytes is None for row in rows)
    words = _bound_words(rows)
    total = exact_text(_step(rows))
    never = sum(not row.loops and row.executions == 0 for row in rows)
    more = f"; {unknown} in loops whose count can't be read" * bool(unknown) + f"; {never} never run" * bool(never)
    count = "1 collective moves" if len(rows) == 1 else f"{len(rows)} collectives move"
    return f"{count} {words}{total} a step, mean over devices{more}."
