"""A diff on a terminal: one line for each difference, at most 100 columns wide."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.views.diff_lines import (
    case_words,
    equivalent_words,
    lines,
    total_words,
    totals_words,
    verdict,
    version_words,
)
from compare.views.terminal import console, plain, text_width, wrapped

_STYLES = {"−": "green", "+": "red", "~": "yellow"}


def print_diff(found: Mapping[str, Any], *, out: Console | None = None) -> None:
    """Of two programs, or of two runs."""
    out = out or console()
    if "programs" in found:
        _print_runs(found, out)
        return
    for side, sign in (("a", "−"), ("b", "+")):
        words = f"{sign} {found[side]['name']}: {total_words(found, side)}"
        out.print(wrapped(words, width=text_width(out), hang="  ", style="bold"))
    _print_lines(found, out)


def _print_lines(found: Mapping[str, Any], out: Console, *, indent: int = 0) -> None:
    told = lines(found)
    if told:
        out.print(_table(told, indent=indent))
    pad = " " * indent
    for words in equivalent_words(found):
        out.print(wrapped(f"= {words}", width=text_width(out), indent=pad, hang=pad + "  ", style="dim"))
    out.print(wrapped(verdict(found), width=text_width(out), indent=pad))


def _table(told: list[Any], *, indent: int) -> Table:
    """Nothing in it goes on to a second line: what is too long is cut, and whole in `--json` and on the page."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False, expand=False)
    table.add_column(width=1 + indent, justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, min_width=9)
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=30)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=30)
    table.add_column(no_wrap=True, overflow="ellipsis", style="dim")
    for line in told:
        words = [plain(word) for word in (line.what, line.where, line.how, _file(line.source))]
        table.add_row(Text(line.sign, style=_STYLES[line.sign]), Text(line.amount), *map(Text, words))
    return table


def _file(source: str) -> str:
    """Of a line of source its file without the folders: the whole path is in `--json` and on the page."""
    return source.rpartition("/")[2]


def _print_runs(found: Mapping[str, Any], out: Console) -> None:
    width = text_width(out)
    for side, sign in (("a", "−"), ("b", "+")):
        words = f"{sign} {found[side]['run']}: {found[side]['case']}"
        out.print(wrapped(words, width=width, hang="  ", style="bold"))
    for title, told in (("another case: ", case_words(found)), ("versions: ", version_words(found))):
        if told:
            out.print(wrapped(f"{title}{'; '.join(told)}", width=width, hang="  "))
    for program in found["programs"]:
        out.print()
        for line in _program(program, width):
            out.print(line)
        if program["differences"] is not None:
            _print_lines(program, out, indent=2)
    for side, words in (("only_in_a", "only in the first"), ("only_in_b", "only in the second")):
        for arm, phase, cell in found[side]:
            out.print(wrapped(f"{arm} {phase} {cell}: {words}", width=width, style="yellow"))
    same = "The two runs move the same." if found["same"] else "The two runs are not the same."
    out.print(Text(f"\n{same}", style="bold"))


def _program(program: Mapping[str, Any], width: int) -> Iterator[Text]:
    yield wrapped(f"{program['title']} {program['phase']} {program['cell']}", width=width, style="bold")
    if program["status"] != ["ok", "ok"]:
        told = [f"{status}{f' ({error})' if error else ''}" for status, error in
                zip(program["status"], program["error"], strict=True)]  # fmt: skip
        yield wrapped(" → ".join(told), width=width, indent="  ", style="red")
    if program["partitioner"][0] != program["partitioner"][1]:
        yield wrapped(f"partitioner {' → '.join(map(str, program['partitioner']))}", width=width, indent="  ")
    if words := totals_words(program):
        yield wrapped("; ".join(words), width=width, indent="  ")
