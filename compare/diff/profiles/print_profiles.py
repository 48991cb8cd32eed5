"""The difference of two profiles in a terminal, at most 100 columns wide."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from compare.diff.profiles.difference import ProfilesDifference, ProgramDifference, Row
from compare.diff.profiles.parts import COMPUTE, COPIES, EXPOSED, IDLE, Pair
from compare.metrics.source_places import shorten
from compare.render.plain_table import plain_table
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.time.program_tables import ROLES
from compare.render.units import UNKNOWN, axes_text, bytes_text, time_text
from compare.report.model.timing import Number
from meshes.process.one_line import plain

_SLOWER, _FASTER = 8, 4
_LEAST = 1e-4
"""Of an execution: a smaller difference has no row."""
_LEAST_SHARE = 0.01
_NAMES = {COMPUTE: "compute", COPIES: "waits for local copies", EXPOSED: "exposed communication", IDLE: "idle"}


def print_profiles(diff: ProfilesDifference, *, out: Console | None = None) -> None:
    """Print each program of both: its parts, then lines, operations and collectives, what became slower first."""
    out = out or console()
    width = text_width(out)
    for sign, name, label in zip("AB", diff.names, diff.labels, strict=True):
        out.print(wrap_prose(f"{sign}: {plain(name)}, {plain(label)}", width=width, style="bold"))
    both = [program for program in diff.programs if None not in program.step_ns]
    for program in both:
        if max(share or 0 for share in program.share) >= _LEAST_SHARE:
            _print_program(program, out)
        else:
            out.print(wrap_prose(f"{plain(program.program)}: {_change(program.step_ns)}", width=width))
    for program in diff.programs:
        if None in program.step_ns:
            if None in program.executions:
                at = 0 if program.executions[1] is None else 1
                words = f"only {'AB'[at]} has {plain(program.program)}: {time_text(program.step_ns[at])} an execution"
            else:
                a, b = map(time_text, program.step_ns)
                known = f"an execution takes {a}, then {b}" if a != b else "how long an execution takes is not known"
                words = f"{plain(program.program)}: {known}"
            out.print(wrap_prose(words, width=width))
    for note in diff.notes:
        out.print(wrap_prose(f"note: {note}", width=width, style="dim"))


def _print_program(program: ProgramDifference, out: Console) -> None:
    out.print()
    spreads = zip(program.shortest_ns, program.longest_ns, strict=True)
    spread = " and ".join(f"{time_text(low)} to {time_text(high)}" for low, high in spreads)
    words = f"{plain(program.program)}: an execution takes {_change(program.step_ns)}; single ones {spread}"
    out.print(wrap_prose(words, width=text_width(out), style="bold"))
    table = plain_table(("",), ("A", "B", "B − A"))
    for part, pair in program.parts.items():
        if any(pair) or part != COPIES:
            table.add_row(_NAMES[part], *map(time_text, pair), _signed(_less(pair)))
    out.print(table)
    least = _LEAST * max(float(step or 0) for step in program.step_ns)
    for title, rows in (("by source line", program.lines), ("by operation", program.operations)):
        if shown := list(_shown(rows, least)):
            out.print(_rows(title, shown))
    if changed := [row for row in program.collectives if _is_changed(row, least)]:
        out.print(_collectives(changed))


def _shown(rows: Sequence[Row], least: float) -> Iterator[Row]:
    """The rows that became slower most, then those that became faster most, whatever is between left out."""
    changed = [row for row in rows if abs(row.difference_ns or 0) >= least]
    slower = [row for row in changed if (row.difference_ns or 0) > 0]
    yield from slower[:_SLOWER]
    yield from changed[max(len(slower), len(changed) - _FASTER) :]


def _is_changed(row: Row, least: float) -> bool:
    a, b = row.executions
    return abs(row.difference_ns or 0) >= least or a != b or row.payload_bytes[0] != row.payload_bytes[1]


def _rows(title: str, rows: Sequence[Row]) -> Table:
    is_operation = title == "by operation"
    headings = (title, "kind of time", *(["source line"] * is_operation))
    table = plain_table(headings, ("count", "A", "B", "B − A"))
    for row in rows:
        kind = f"{plain(row.kind)} {axes_text(plain(row.axes))}" if row.kind else ROLES.get(row.role, row.role)
        source = shorten(plain(row.source if row.source != "?" else row.part), most=24)
        what = plain(row.what) if is_operation else shorten(plain(row.what))
        what += f" (was :{row.before.rpartition(':')[2]})" if row.before and not is_operation else ""
        table.add_row(
            what,
            kind,
            *([source] * is_operation),
            _counts(row),
            *map(time_text, row.time_ns),
            _signed(row.difference_ns),
        )
    return table


def _collectives(rows: Sequence[Row]) -> Table:
    table = plain_table(("collectives", "over"), ("count", "payload A", "B", "exposed A", "B", "B − A"))
    for row in rows:
        axes = axes_text(plain(row.axes)).removeprefix("over ")
        table.add_row(
            plain(row.kind),
            axes,
            _counts(row),
            *map(bytes_text, row.payload_bytes),
            *map(time_text, row.exposed_ns),
            _signed(row.difference_ns),
        )
    return table


def _counts(row: Row) -> str:
    a, b = (f"{count or 0:,.4g}" for count in row.executions)
    return f"{a} ×" if a == b else f"{a} → {b} ×"


def _change(pair: Pair) -> str:
    """`65.5 ms, then 66.9 ms: 1.42 ms (2.2 %) longer`."""
    a, b = (float(amount or 0) for amount in pair)
    share = f" ({100 * abs(b - a) / a:.2g} %)" if a else ""
    words = f"{time_text(abs(b - a))}{share} {'longer' if b > a else 'shorter'}" if a != b else "the same"
    return f"{time_text(a)}, then {time_text(b)}: {words}"


def _less(pair: Pair) -> Number:
    return None if None in pair else (pair[1] or 0) - (pair[0] or 0)


def _signed(amount: Number) -> str:
    return UNKNOWN if amount is None else f"{'+' if amount > 0 else ''}{time_text(amount)}"
