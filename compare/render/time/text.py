"""The times of a phase's programs in a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from compare.render.terminal import STYLES, text_width, wrapped
from compare.render.time.timing_section import GROUPS, Timing, by_group, failures, labels, sentence, timings, waits
from compare.render.units import time_text
from meshes.process.one_line import plain

_TIMES = (("step_ns", "step"), ("compute_ns", "compute"), ("communication_ns", "communi-\ncation"),
          ("hidden_ns", "hidden"), ("exposed_ns", "exposed"))  # fmt: skip
_VERDICTS = ("inherent", "inflated", "induced")

_LONGEST = 2
"""Places of each default program that are told."""

_INDENT = "   "


def times(report: Mapping[str, Any], phase: str, out: Console) -> Iterator[RenderableType]:
    """For the modelled and for the measured programs a table, and what the default ones wait for that nobody needed."""
    width = text_width(out)
    found = timings(report, phase)
    for group, own in by_group(found).items():
        told = labels(own)
        label = next(iter(told)) if len(told) == 1 else group
        yield Text("")
        yield wrapped(f"{phase}: time a step (mean over devices and steps), {label}:", width=width, style="bold")
        table = _table(own)
        wide = Measurement.get(out, out.options.update(max_width=10 * width), table).minimum <= width
        yield from (table,) if wide else _narrow(own, width)
        if len(told) > 1:
            for words, names in told.items():
                yield wrapped(f"{', '.join(names)}: {words}", width=width, style="dim")
        for one in own:
            if one.default:
                yield from _longest(one, width)
            if group == GROUPS[2] and (words := _beside(one)):
                yield wrapped(f"{one.title} {one.cell}: {words}", width=width, hang=_INDENT)
    for line in failures(report, phase):
        yield wrapped(line, width=width, style="yellow")


def _table(own: Sequence[Timing]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column("program")
    for _, words in _TIMES:
        table.add_column(words, justify="right", no_wrap=True, vertical="bottom")
    for number, name in enumerate(_VERDICTS):
        words = f"exposed:\n{name}" if not number else name
        table.add_column(Text(words, style=STYLES[name]), justify="right", no_wrap=True, vertical="bottom")
    for one in own:
        amounts = [Text(time_text(one.time(name))) for name, _ in _TIMES]
        amounts += [Text(time_text(one.exposed(name)), style=STYLES[name] if one.exposed(name) else "dim")
                    for name in _VERDICTS]  # fmt: skip
        table.add_row(Text.assemble((plain(one.title), "bold"), " ", plain(one.cell)), *amounts)
    return table


def _narrow(own: Sequence[Timing], width: int) -> Iterator[Text]:
    """The same where a terminal has no room for a table."""
    for one in own:
        words = ", ".join(f"{name} {time_text(one.exposed(name))}" for name in _VERDICTS)
        yield wrapped(f"{one.title} {one.cell}: {sentence(one)} ({words})", width=width, hang=_INDENT)


def _beside(one: Timing) -> str:
    """What the table has no column for, and CPU devices show: waiting for each other, and for the host."""
    told = []
    if one.time("communication_ns") and one.time("wait_ns") is not None:
        told.append(f"{time_text(one.time('wait_ns'))} of its communication is waiting for others to come")
    if one.time("compute_ns") is not None and one.idle_ns:
        told.append(f"{time_text(one.idle_ns)} of its step is neither (a step begins on the host)")
    return "; ".join(told)


def _longest(one: Timing, width: int) -> Iterator[Text]:
    """What a program waits for that nobody needed."""
    found = sorted((wait for wait in waits(one) if wait.needless_ns), key=lambda wait: -wait.needless_ns)[:_LONGEST]
    if found:
        told = [f"{time_text(wait.needless_ns)} for {wait.place} ({', '.join(wait.causes)})" for wait in found]
        words = f"What {one.title} {one.cell} waits for and nobody needed, the longest first: {'; '.join(told)}"
        yield wrapped(words, width=width, hang=_INDENT)
