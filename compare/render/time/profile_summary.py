"""Print the summary of a profile in a terminal."""

from collections.abc import Iterator, Mapping

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.render.plain_table import plain_table
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.time.measured_power import print_power
from compare.render.units import UNKNOWN, axes_text, bytes_text, count_text, time_text
from compare.report.model.timing import Times, TraceSummary
from compare.report.model.trace import TraceOperation
from meshes.process.one_line import plain

_COLUMNS = ("count", "payload", "time", "exposed", "hidden", "waiting")
_BAR = 30
COPIES = "waiting for local copies"
UNKNOWN_AXES = "?"
_NO_SHARE = 1e-6
"""A smaller share of a step is what rounding left."""


def print_trace(
    summary: TraceSummary,
    rows: pd.DataFrame,
    *,
    longest: Mapping[str, TraceOperation] | None = None,
    out: Console | None = None,
) -> None:
    """Print how a step's time divides, then the times by axes and kind, the most exposed first.

    rows: columns axes, kind, executions, payload_bytes, communication_ns, exposed_ns, hidden_ns, wait_ns, per device
    and step.  longest: of each role the operation with the most time, which the headline names.
    """
    out = out or console()
    width = text_width(out)
    times = summary.per_step
    out.print(wrap_prose(summary.label, width=width, style="bold"))
    out.print(wrap_prose(_sentence(summary, longest or {}), width=width))
    if times.compute_ns is not None:
        out.print()
        out.print(*_step_bars(times), sep="\n")
    rows = rows[rows["executions"].gt(0) | rows["communication_ns"].gt(0) | rows["communication_ns"].isna()]
    if len(rows):
        out.print()
        out.print(_table(rows))
    print_power(summary.power, out=out)
    unjoined = summary.unjoined_events
    if unjoined:
        words = f"{count_text(unjoined, 'communication')} not matched to an instruction; identified by name only"
        out.print(wrap_prose(words, width=width, style="yellow"))
    for note in (*summary.notes, *(summary.power.notes if summary.power else ())):
        out.print(wrap_prose(f"note: {note}", width=width, style="dim"))


def _sentence(summary: TraceSummary, longest: Mapping[str, TraceOperation]) -> str:
    times = summary.per_step
    seen = f"{count_text(summary.steps, 'step')} on {count_text(summary.devices, 'device')}"
    step = f"a step takes {time_text(times.step_ns)}, mean over {seen}{_dominant(times, longest)}"
    if times.communication_ns is None:
        return f"{step}; how long it communicates is not known."
    if not times.communication_ns:
        return f"{step}; it does not communicate."
    exposed, hidden = times.exposed_ns, times.overlap
    behind = "compute and waits for copies" if times.copy_wait_ns and (hidden or 0) >= _NO_SHARE else "compute"
    return (
        f"{step}; communication {time_text(times.communication_ns)} ({_percent(times.communication_fraction)}), "
        f"{_percent(hidden)} of it hidden behind {behind}, {time_text(exposed)} exposed."
    )


def _dominant(times: Times, longest: Mapping[str, TraceOperation]) -> str:
    """`: 97 % waits for local copies, 585 ms of it in copy-done.2 and 2 more (host → HBM)`.

    Nothing where the operations are not known, or the time is.
    """
    parts = {
        "compute": (times.compute_ns, "compute"),
        "copy": (times.copy_wait_ns, "waits for local copies"),
        "communication": (times.exposed_ns, "exposed communication"),
    }
    role = max(parts, key=lambda name: parts[name][0] or 0)
    amount, words = parts[role]
    if not amount or not times.step_ns or role not in longest:
        return ""
    operation = longest[role]
    more = f" and {operation.instructions - 1} more" if operation.instructions > 1 else ""
    known = "" if operation.moves in ("", UNKNOWN_AXES) else plain(operation.moves)
    where = "" if not known else f" {axes_text(known)}" if role == "communication" else f" ({known})"
    time = time_text(operation.exposed_ns)
    return f": {_percent(amount / times.step_ns)} {words}, {time} of it in {plain(operation.name)}{more}{where}"


def _step_bars(times: Times) -> Iterator[Text]:
    """Bars of compute, waits for copies, exposed communication and idle time, which add up to the step."""
    step, compute, exposed, copies = (
        amount or 0 for amount in (times.step_ns, times.compute_ns, times.exposed_ns, times.copy_wait_ns)
    )
    parts = [("compute", compute, "green"), ("exposed communication", exposed, "red")]
    parts += [(COPIES, copies, "yellow")] if times.copy_wait_ns is not None else []
    parts.append(("idle", max(step - compute - exposed - copies, 0), "dim"))
    for words, amount, style in parts:
        share = amount / step if step else 0
        bar = "█" * round(share * _BAR)
        yield Text.assemble(f"  {words:<24}{time_text(amount):>9} {_percent(share):>10}  ", (bar, style))


def _table(rows: pd.DataFrame) -> Table:
    table = plain_table(("over", "collective"), _COLUMNS)
    for row in rows.sort_values(["exposed_ns", "communication_ns"], ascending=False).to_dict("records"):
        amounts = [time_text(_known(row[name])) for name in ("communication_ns", "exposed_ns", "hidden_ns", "wait_ns")]
        payload = bytes_text(_known(row["payload_bytes"]))
        axes = plain(row["axes"]).replace(",", " and ")
        table.add_row(axes, plain(row["kind"]), f"{row['executions']:,.4g} ×", payload, *amounts)
    return table


def _known(amount: float) -> float | None:
    return None if pd.isna(amount) else amount


def _percent(share: float | None) -> str:
    if share is None:
        return UNKNOWN
    if share < _NO_SHARE:
        return "0 %"
    return f"{100 * share:.3g} %" if share < 0.9995 else f"{100 * share:.0f} %"
