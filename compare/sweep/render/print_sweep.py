"""A sweep in a terminal: its sentence, one table, and what is missing."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from compare.render.plain_table import plain_table
from compare.render.terminal import console, text_width, wrap_prose
from compare.sweep.render.lines import (
    Reason,
    SweepLine,
    case_lines,
    common_words,
    crosses_slices,
    footnotes,
    list_reasons,
)
from compare.sweep.summary import Sweep
from meshes.process.one_line import plain

NOTE = "×: emitted ÷ inherent bytes of the default program; step times are modelled, not measured."


def print_sweep(sweep: Sweep, *, out: Console | None = None) -> None:
    """The sentence, the table, then failures and refusals, a line each."""
    out = out or console()
    width = text_width(out)
    out.print(wrap_prose(sweep["sentence"], width=width, style="bold"))
    lines, arms = case_lines(sweep), sweep["arms"]
    if common := common_words(sweep):
        out.print(wrap_prose("Common to all: " + ", ".join(common), width=width, style="dim"))
    if lines:
        table = _table(lines, arms)
        out.print()
        if Measurement.get(out, out.options.update(max_width=10 * width), table).minimum > width:
            out.print(*_narrow(lines, arms, width), sep="\n")
        else:
            out.print(table)
        out.print(wrap_prose(" ".join([NOTE, *footnotes(lines)]), width=width, style="dim"))
    for style, reasons in (("red", list_reasons(sweep)), ("yellow", list_reasons(sweep, status="refused"))):
        out.print(*_reasons(reasons, width, style), sep="\n", end="\n" if reasons else "")
    out.print()


def _table(lines: Sequence[SweepLine], arms: Mapping[str, str]) -> Table:
    far = list(arms) if crosses_slices(lines) else []
    heads = ["inherent\nbytes", *arms.values(), *(f"{arms[arm]}\nover DCN" for arm in far)]
    heads += [f"{title}\nstep time" for title in arms.values()]
    table = plain_table(("model", "mesh", "phase"), heads, overflow="ellipsis", vertical="bottom")
    table.columns[2].no_wrap = True
    before = ("", "")
    for line in lines:
        names = (line.model, line.label)
        shown = [plain(word) if names[: at + 1] != before[: at + 1] else "" for at, word in enumerate(names)]
        numbers = [Text(line.ratio(arm), style="bold") for arm in arms]
        numbers += [Text(line.between_slices(arm)) for arm in far] + [Text(line.step(arm)) for arm in arms]
        table.add_row(*shown, line.phase, line.needs, *numbers)
        before = names
    return table


def _narrow(lines: Sequence[SweepLine], arms: Mapping[str, str], width: int) -> Iterator[Text]:
    """The same for a terminal that is too narrow for the table."""
    for line in lines:
        programs = "; ".join(f"{title} {line.ratio(arm)}, step time {line.step(arm)}" for arm, title in arms.items())
        words = f"{line.model} on {line.label}, {line.phase}: inherent {line.needs}; {programs}"
        yield wrap_prose(words, width=width, hang="   ")


def _reasons(reasons: Sequence[Reason], width: int, style: str) -> Iterator[Text]:
    for reason in reasons:
        yield wrap_prose(f"{reason.what}: {reason.status}: {reason.reason}", width=width, hang="   ", style=style)
