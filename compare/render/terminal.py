"""Blocks as lines of a terminal: 60 to 100 columns, readable without colour, nothing obeyed that a program wrote."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import IO

from rich.console import Console
from rich.text import Text

from compare.render.blocks import (
    Block,
    Blocks,
    Bullets,
    Cell,
    Column,
    Details,
    Difference,
    Differences,
    Fold,
    Heading,
    PageOnly,
    Row,
    Section,
    Sentence,
    Shown,
    Table,
    Tone,
    Widget,
)
from compare.render.units import KEPT, capitalize_first, keep_units_together
from meshes.process.one_line import plain

WIDTH = 100

STYLES = {"inherent": "cyan", "inflated": "yellow", "induced": "red"}

_NARROWEST = 60

_TONES = {Tone.PLAIN: "", Tone.STRONG: "bold", Tone.SOFT: "dim", Tone.WARNING: "yellow", Tone.ERROR: "red"}

_INDENT = "   "

_GAP = 2
"""Spaces between columns."""

SOFT_HYPHEN = "\N{SOFT HYPHEN}"
"""In a heading: where a narrow column may break the word."""

_LEAST_PROSE = 12
"""Columns that words may be wrapped to, in a table, before it is given up for sentences."""

_FEW = 3
"""Differences that the short form of a terminal has."""

_UNDER = " " * 12
"""Below the place of a difference: behind its number and its bytes."""


def console(file: IO[str] | None = None) -> Console:
    """Where views print: standard output, or a file, 100 columns wide; rich itself heeds `NO_COLOR` and pipes."""
    made = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=False)
    made.width = max(_NARROWEST, min(WIDTH, made.size.width)) if made.is_terminal else WIDTH
    return made


def text_width(out: Console) -> int:
    """Columns for prose."""
    return max(_NARROWEST, min(WIDTH, out.width))


def wrap_prose(words: str, *, width: int = WIDTH, indent: str = "", hang: str = "", style: str = "") -> Text:
    """Prose over several lines; a number and its unit stay together."""
    lines = textwrap.wrap(
        keep_units_together(plain(words)), width=width, initial_indent=indent, subsequent_indent=hang or indent,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    return Text("\n".join(lines).replace(KEPT, " "), style=style, no_wrap=True, overflow="ignore")


def print_sections(sections: Sequence[Section], *, out: Console, details: bool) -> None:
    """Each section that has anything to say in a terminal, with an empty line before it."""
    for section in sections:
        lines = list(_lines(section.blocks, width=text_width(out), details=details))
        if not lines:
            continue
        title = capitalize_first(f"{section.title}: {section.lead}" if section.lead else section.title)
        out.print()
        out.print(wrap_prose(title, width=text_width(out), style="bold"))
        out.print(*lines, sep="\n")


def print_blocks(blocks: Blocks, *, out: Console, details: bool) -> None:
    """Blocks one below the other; what only a page can show is left out, and without `details` what is long."""
    for line in _lines(blocks, width=text_width(out), details=details):
        out.print(line)


def _lines(blocks: Blocks, *, width: int, details: bool) -> Iterator[Text]:
    for block in blocks:
        yield from _block(block, width=width, details=details)


def _block(block: Block, *, width: int, details: bool) -> Iterator[Text]:
    match block:
        case Heading(words=words):
            yield Text("")
            yield wrap_prose(words, width=width, style="bold")
        case Sentence(words=words, tone=tone):
            yield wrap_prose(_strip_backticks(words), width=width, hang=_INDENT if details else "", style=_TONES[tone])
        case Bullets(items=items):
            for words in items:
                yield wrap_prose(_strip_backticks(words), width=width, hang=_INDENT)
        case Table():
            yield from _table(block, width)
        case Differences():
            yield from _differences(block, width=width, details=details)
        case Fold(summary=summary, terminal=Shown.SUMMARY):
            yield wrap_prose(_strip_backticks(summary), width=width, hang=_INDENT)
        case Fold(blocks=inside, terminal=Shown.BLOCKS):
            yield from _lines(inside, width=width, details=details)
        case Details(blocks=inside):
            yield from _lines(inside, width=width, details=details) if details else ()
        case Fold() | PageOnly() | Widget():
            return


def _strip_backticks(words: str) -> str:
    return words.replace("`", "")


def _differences(block: Differences, *, width: int, details: bool) -> Iterator[Text]:
    """All of them with all that is known in a few lines; in the short form two lines each of the first few."""
    if details:
        yield Text("")
    yield wrap_prose(block.heading, width=width, style="bold")
    for number, one in enumerate(block.items if details else block.items[:_FEW], start=1):
        what = f"{one.arm}: {one.collective} in {one.scope}, {one.executions}"
        words = wrap_prose(what, width=width, indent=_UNDER).plain[len(_UNDER) :]
        amount = (f"{one.amount:>8} ", f"bold {STYLES.get(one.verdict, '')}")
        yield Text.assemble(f"{number:>2} ", amount, words, no_wrap=True, overflow="ignore")
        yield from _in_full(one, width) if details else _in_short(one, width)
    if not details and len(block.items) > _FEW:
        yield wrap_prose(f"and {len(block.items) - _FEW} more: --details", width=width, indent=_UNDER, style="dim")


def _in_short(difference: Difference, width: int) -> Iterator[Text]:
    absent = [f"absent in {', '.join(difference.absent_in)}"] if difference.absent_in else []
    words = "; ".join([f"{difference.verdict}, {difference.cause}", _source(difference), *absent])
    yield wrap_prose(words, width=width, indent=_UNDER, style="dim")


def _in_full(difference: Difference, width: int) -> Iterator[Text]:
    yield wrap_prose(
        _strip_backticks(f"{difference.verdict}, {difference.cause}: {difference.sentence}"), width=width, indent=_UNDER
    )
    words = "; ".join(filter(None, [_source(difference), difference.by_arm, difference.control]))
    yield wrap_prose(words, width=width, indent=_UNDER, style="dim")


def _source(difference: Difference) -> str:
    """The line of source with the most bytes, and how many more there are."""
    if not difference.sources:
        return "no line of source is recorded"
    line, amount = difference.sources[0]
    return f"{line} ({amount}, and {len(difference.sources) - 1} more)" if len(difference.sources) > 1 else line


def _table(table: Table, width: int) -> Iterator[Text]:
    """Columns where they have room; numbers are never wrapped or cut, words may be wrapped."""
    columns = [(number, column) for number, column in enumerate(table.columns) if not column.page_only]
    rows = [[_first(row), *(row.cells[number - 1] for number, _ in columns[1:])] for row in table.rows]
    wide = [_wide(column, [row[at] for row in rows]) for at, (_, column) in enumerate(columns)]
    over = sum(wide) + _GAP * (len(wide) - 1) - width
    for at, (_, column) in enumerate(columns):
        if over > 0 and column.prose:
            less = min(over, max(0, wide[at] - _LEAST_PROSE))
            wide[at], over = wide[at] - less, over - less
    if over > 0:
        yield from _narrow(table, width)
        return
    shown = [column for _, column in columns]
    yield from _line([Cell(_heading(column, size)) for column, size in zip(shown, wide, strict=True)], shown, wide,
                     styles=[column.style for column in shown], bottom=True)  # fmt: skip
    yield Text("─" * (sum(wide) + _GAP * (len(wide) - 1)))
    for row, cells in zip(table.rows, rows, strict=True):
        styles = ["bold", *(STYLES.get(cell.style, "dim" if cell.style == "zero" else "") for cell in cells[1:])]
        yield from _line(cells, shown, wide, styles=styles, bottom=False)
        if row.note:
            yield wrap_prose(row.note, width=width, indent=_INDENT, style="dim")


def _first(row: Row) -> Cell:
    return Cell(f"{row.name} {row.code}".strip())


def _wide(column: Column, cells: Sequence[Cell]) -> int:
    """Characters of a column: its longest value, or the longest word of its heading."""
    heading = f"{column.heading} {column.code}".replace("-", "- ").replace(SOFT_HYPHEN, "- ")
    return max([len(word) for word in heading.split(" ")] + [len(plain(cell.words)) for cell in cells])


def _heading(column: Column, size: int) -> str:
    """A heading in lines of at most `size` characters."""
    words = f"{column.heading} {column.code}".strip()
    whole = words.replace(SOFT_HYPHEN, "")
    fits = max(map(len, whole.split(" "))) <= size
    return "\n".join(textwrap.wrap(whole if fits else words.replace(SOFT_HYPHEN, "-"), width=max(size, 1)) or [""])


def _line(
    cells: Sequence[Cell], columns: Sequence[Column], wide: Sequence[int], *, styles: Sequence[str], bottom: bool
) -> Iterator[Text]:
    """One row, which has as many lines as its highest cell; `bottom`: its cells stand on one line."""
    parts = [
        cell.words.split("\n") if bottom else textwrap.wrap(plain(cell.words), width=max(size, 1)) or [""]
        for cell, size in zip(cells, wide, strict=True)
    ]
    high = max(map(len, parts))
    for number in range(high):
        line = Text(no_wrap=True, overflow="ignore")
        for at, (part, column, size) in enumerate(zip(parts, columns, wide, strict=True)):
            index = number - (high - len(part)) if bottom else number
            words = part[index] if 0 <= index < len(part) else ""
            left = at == 0 or column.prose
            line.append(" " * (_GAP * (at > 0)))
            line.append(f"{words:{'<' if left else '>'}{size}}".replace(KEPT, " "), style=styles[at])
        line.rstrip()
        yield line


def _narrow(table: Table, width: int) -> Iterator[Text]:
    """A sentence for each row, where a terminal has no room for the columns."""
    headings = [f"{column.heading} {column.code}".strip().replace(SOFT_HYPHEN, "") for column in table.columns[1:]]
    for row in table.rows:
        values = zip(headings, table.columns[1:], row.cells, strict=True)
        words = ", ".join(f"{heading} {cell.words}" for heading, column, cell in values if not column.page_only)
        yield wrap_prose(f"{_first(row).words}: {words}", width=width, hang=_INDENT)
        if row.note:
            yield wrap_prose(row.note, width=width, indent=_INDENT, style="dim")
