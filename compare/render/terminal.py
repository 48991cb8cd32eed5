"""Blocks as lines of a terminal: 60 to 100 columns, readable without colour, control characters removed."""

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
    DifferenceItem,
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
from compare.render.palette import VERDICTS
from compare.render.units import KEPT, capitalize_first, keep_units_together
from meshes.process.one_line import plain

WIDTH = 100

STYLES = VERDICTS

_NARROWEST = 60

_TONES = {Tone.PLAIN: "", Tone.STRONG: "bold", Tone.SOFT: "dim", Tone.WARNING: "yellow", Tone.ERROR: "red"}

_INDENT = "   "

_GAP = 2
"""Spaces between columns."""

SOFT_HYPHEN = "\N{SOFT HYPHEN}"
"""Marks where a heading may be broken in a narrow column."""

_LEAST_PROSE = 12
"""Least width of a prose column; narrower tables become sentences."""

_FEW = 3
"""Differences in the short form."""

_UNDER = " " * 12
"""Indent of a difference's further lines: behind its number and its bytes."""


def console(file: IO[str] | None = None) -> Console:
    """A console on stdout or a file, at most 100 columns wide; rich handles `NO_COLOR` and pipes."""
    out = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=False)
    out.width = max(_NARROWEST, min(WIDTH, out.size.width)) if out.is_terminal else WIDTH
    return out


def text_width(out: Console) -> int:
    """Width for prose."""
    return max(_NARROWEST, min(WIDTH, out.width))


def wrap_prose(words: str, *, width: int = WIDTH, indent: str = "", hang: str = "", style: str = "") -> Text:
    """Wrapped prose; a number and its unit stay together."""
    lines = textwrap.wrap(
        keep_units_together(plain(words)),
        width=width,
        initial_indent=indent,
        subsequent_indent=hang or indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return Text("\n".join(lines).replace(KEPT, " "), style=style, no_wrap=True, overflow="ignore")


def print_sections(sections: Sequence[Section], *, out: Console, details: bool) -> None:
    """Print each section that is not empty, with an empty line before it."""
    for section in sections:
        lines = list(_lines(section.blocks, width=text_width(out), details=details))
        if not lines:
            continue
        title = capitalize_first(f"{section.title}: {section.lead}" if section.lead else section.title)
        out.print()
        out.print(wrap_prose(title, width=text_width(out), style="bold"))
        out.print(*lines, sep="\n")


def print_blocks(blocks: Blocks, *, out: Console, details: bool) -> None:
    """Print blocks, without page-only ones, and without long ones unless `details`."""
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
    """With details, all differences in full; else the first few, two lines each."""
    if details:
        yield Text("")
    yield wrap_prose(block.heading, width=width, style="bold")
    for number, difference in enumerate(block.items if details else block.items[:_FEW], start=1):
        what = f"{difference.arm}: {difference.collective} in {difference.scope}, {difference.executions}"
        words = wrap_prose(what, width=width, indent=_UNDER).plain[len(_UNDER) :]
        amount = (f"{difference.amount:>8} ", f"bold {STYLES.get(difference.verdict, '')}")
        yield Text.assemble(f"{number:>2} ", amount, words, no_wrap=True, overflow="ignore")
        yield from _difference_details(difference, width) if details else _difference_summary(difference, width)
    if not details and len(block.items) > _FEW:
        yield wrap_prose(f"and {len(block.items) - _FEW} more: --details", width=width, indent=_UNDER, style="dim")


def _difference_summary(difference: DifferenceItem, width: int) -> Iterator[Text]:
    absent = [f"absent in {', '.join(difference.absent_in)}"] if difference.absent_in else []
    words = "; ".join([f"{difference.verdict}, {difference.cause}", _source(difference), *absent])
    yield wrap_prose(words, width=width, indent=_UNDER, style="dim")


def _difference_details(difference: DifferenceItem, width: int) -> Iterator[Text]:
    yield wrap_prose(
        _strip_backticks(f"{difference.verdict}, {difference.cause}: {difference.sentence}"), width=width, indent=_UNDER
    )
    words = "; ".join(filter(None, [_source(difference), difference.by_arm, difference.control]))
    yield wrap_prose(words, width=width, indent=_UNDER, style="dim")


def _source(difference: DifferenceItem) -> str:
    """The source line with the most bytes, and the number of further ones."""
    if not difference.sources:
        return "no line of source is recorded"
    line, amount = difference.sources[0]
    return f"{line} ({amount}, and {len(difference.sources) - 1} more)" if len(difference.sources) > 1 else line


def _table(table: Table, width: int) -> Iterator[Text]:
    """A table in columns if it fits; numbers are never wrapped or cut, prose may wrap."""
    columns = [(number, column) for number, column in enumerate(table.columns) if not column.page_only]
    rows = [[_first(row), *(row.cells[number - 1] for number, _ in columns[1:])] for row in table.rows]
    widths = [_column_width(column, [row[index] for row in rows]) for index, (_, column) in enumerate(columns)]
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    for index, (_, column) in enumerate(columns):
        if excess > 0 and column.prose:
            less = min(excess, max(0, widths[index] - _LEAST_PROSE))
            widths[index], excess = widths[index] - less, excess - less
    if excess > 0:
        yield from _sentences(table, width)
        return
    shown = [column for _, column in columns]
    yield from _line(
        [Cell(_heading(column, size)) for column, size in zip(shown, widths, strict=True)],
        shown,
        widths,
        styles=[column.style for column in shown],
        bottom=True,
    )
    yield Text("─" * (sum(widths) + _GAP * (len(widths) - 1)))
    for row, cells in zip(table.rows, rows, strict=True):
        styles = ["bold", *(STYLES.get(cell.style, "dim" if cell.style == "zero" else "") for cell in cells[1:])]
        yield from _line(cells, shown, widths, styles=styles, bottom=False)
        if row.note:
            yield wrap_prose(row.note, width=width, indent=_INDENT, style="dim")


def _first(row: Row) -> Cell:
    return Cell(f"{row.name} {row.code}".strip())


def _column_width(column: Column, cells: Sequence[Cell]) -> int:
    """Width of a column: its longest value, or the longest word of its heading."""
    heading = f"{column.heading} {column.code}".replace("-", "- ").replace(SOFT_HYPHEN, "- ")
    return max([len(word) for word in heading.split(" ")] + [len(plain(cell.words)) for cell in cells])


def _heading(column: Column, size: int) -> str:
    """A heading in lines of at most `size` characters."""
    words = f"{column.heading} {column.code}".strip()
    unbroken = words.replace(SOFT_HYPHEN, "")
    fits = max(map(len, unbroken.split(" "))) <= size
    return "\n".join(textwrap.wrap(unbroken if fits else words.replace(SOFT_HYPHEN, "-"), width=max(size, 1)) or [""])


def _line(
    cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int], *, styles: Sequence[str], bottom: bool
) -> Iterator[Text]:
    """One row, as many lines as its highest cell; `bottom`: cells are aligned at the bottom."""
    parts = [
        cell.words.split("\n") if bottom else textwrap.wrap(plain(cell.words), width=max(size, 1)) or [""]
        for cell, size in zip(cells, widths, strict=True)
    ]
    high = max(map(len, parts))
    for number in range(high):
        line = Text(no_wrap=True, overflow="ignore")
        for column_index, (part, column, size) in enumerate(zip(parts, columns, widths, strict=True)):
            index = number - (high - len(part)) if bottom else number
            words = part[index] if 0 <= index < len(part) else ""
            left = column_index == 0 or column.prose
            line.append(" " * (_GAP * (column_index > 0)))
            line.append(f"{words:{'<' if left else '>'}{size}}".replace(KEPT, " "), style=styles[column_index])
        line.rstrip()
        yield line


def _sentences(table: Table, width: int) -> Iterator[Text]:
    """A sentence for each row, for terminals too narrow for the columns."""
    headings = [f"{column.heading} {column.code}".strip().replace(SOFT_HYPHEN, "") for column in table.columns[1:]]
    for row in table.rows:
        values = zip(headings, table.columns[1:], row.cells, strict=True)
        words = ", ".join(f"{heading} {cell.words}" for heading, column, cell in values if not column.page_only)
        yield wrap_prose(f"{_first(row).words}: {words}", width=width, hang=_INDENT)
        if row.note:
            yield wrap_prose(row.note, width=width, indent=_INDENT, style="dim")
