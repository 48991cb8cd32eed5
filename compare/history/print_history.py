"""The history of a collective in a terminal: each pass that changed it, and the HLO before and after."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from compare.history.lineage_query import History
from compare.history.lines import Part, shorten, split_changes
from compare.passes.lineage import CREATED, PROGRAM, RENAMED, Event
from compare.render.report.origins import by_text
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.units import axes_text, bytes_text
from meshes.process.one_line import plain

_INDENT = "   "
MARKS = ("«", "»")
"""Around the parts in which two lines differ: readable without colour."""


def print_histories(histories: Sequence[History], *, out: Console | None = None) -> None:
    """Print a line for each collective with its origin, and below it the passes that changed it."""
    out = out or console()
    for program, together in groupby(histories, key=lambda history: history.program):
        out.print(Text(plain(program), style="bold"))
        members = list(together)
        cells = [
            (history.row.name, f"{history.row.kind} {axes_text(history.row.axes)}", history.row.scope)
            for history in members
        ]
        widths = [max(len(plain(row[at])) for row in cells) for at in range(3)]
        for history, row in zip(members, cells, strict=True):
            begin = "  ".join(plain(word).ljust(wide) for word, wide in zip(row, widths, strict=True))
            out.print(Text(f"{begin}  {plain(history.row.origin)}", no_wrap=True, overflow="ignore"), soft_wrap=True)
            if history.row.changes:
                changes = "; ".join(f"{change.what} by {by_text(change.by)}" for change in history.row.changes)
                out.print(
                    wrap_prose(f"then {changes}", width=text_width(out), indent=_INDENT, hang=_INDENT * 2, style="dim")
                )


def print_life(history: History, *, out: Console | None = None) -> None:
    """Print one collective, pass by pass."""
    out = out or console()
    width, row = text_width(out), history.row
    begin = f"{row.name} of {history.program}: {row.kind} {axes_text(row.axes)} in {row.scope}"
    out.print(wrap_prose(f"{begin}, {bytes_text(row.step_wire_bytes)} a step", width=width, style="bold"))
    out.print(wrap_prose(f"Origin: {row.origin}. {_sum(history)}", width=width))
    if row.source_line:
        out.print(wrap_prose(f"Source: {row.source_line}", width=width, style="dim"))
    number, printed = 0, set[tuple[str, ...]]()
    for is_rename, events in groupby(history.track.events, key=lambda event: event.what == RENAMED):
        members = list(events)
        if is_rename:
            out.print(wrap_prose(_renamed(members), width=width, indent=_INDENT, style="dim"))
            continue
        for event in members:
            lines = list(_lines(event, width=width))
            if (heading := _heading(event), *(line.plain for line in lines)) in printed:
                continue  # of a combined collective each member may say the same
            printed.add((heading, *(line.plain for line in lines)))
            number += 1
            out.print(wrap_prose(f"{number}. {heading}", width=width, style="bold"))
            out.print(*lines, sep="\n")
    out.print()


def _sum(history: History) -> str:
    if not history.row.changes:
        return "No later pass changed it."
    return "Then " + ", ".join(f"{change.what} by {by_text(change.by)}" for change in history.row.changes) + "."


def _heading(event: Event) -> str:
    if event.what != CREATED:
        return f"{event.span}: {event.what}" + (f" ({event.detail})" if event.detail else "")
    if event.span == PROGRAM:
        return "in the program from the framework"
    return f"{event.span}: created" + (", replacing:" if event.before else "")


def _renamed(events: Sequence[Event]) -> str:
    names = [_name(events[0].before[0]), *(_name(event.after) for event in events)]
    spans = ", ".join(dict.fromkeys(event.span for event in events))
    return f"renamed {' → '.join(names)} ({spans})"


def _name(line: str) -> str:
    return line.removeprefix("ROOT ").partition(" = ")[0].lstrip("%")


def _lines(event: Event, *, width: int) -> Iterator[Text]:
    """The lines before with a minus, the line after with a plus; what differs is marked."""
    after = shorten(event.after)
    if event.what == CREATED or len(event.before) != 1:
        for line in dict.fromkeys(shorten(line) for line in event.before):
            yield _line("  " if event.what == CREATED else "- ", [Part(line, False)], "red", width)
        yield _line("+ ", [Part(after, False)], "green", width)
        return
    left, right = split_changes(shorten(event.before[0]), after)
    yield _line("- ", left, "red", width)
    yield _line("+ ", right, "green", width)


def _line(sign: str, parts: Sequence[Part], style: str, width: int) -> Text:
    begin, end = MARKS
    words = "".join(f"{begin}{part.text}{end}" if part.changed and part.text.strip() else part.text for part in parts)
    return wrap_prose(sign + words, width=width, indent=_INDENT, hang=_INDENT + "    ", style=style)
