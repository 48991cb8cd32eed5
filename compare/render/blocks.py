"""A report as a list of blocks, rendered by two back ends, `terminal.py` and `html.py`.

Each kind of block has its own rule for a terminal, which prints a short form unless details are requested.
Words are plain text: each back end escapes them in its own way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """The tone of a sentence; on a page also its CSS class."""

    PLAIN = "plain"
    STRONG = "strong"
    SOFT = "how"
    WARNING = "warning"
    ERROR = "error"


class Shown(StrEnum):
    """What a terminal prints of a fold, which a page shows closed."""

    NOTHING = "nothing"
    SUMMARY = "summary"
    BLOCKS = "blocks"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section."""

    words: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph.  Text in backticks is code."""

    words: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table; `style`: a verdict or `zero`; `exact`: the full value, which a page shows on demand."""

    words: str
    style: str = ""
    exact: str = ""
    soft: str = ""
    """Small print behind it; on a page only."""


def amount_cell(words: str, amount: float | None, *, style: str = "", exact: str = "") -> Cell:
    """The words of an amount, which is `zero` where it is none or unknown."""
    return Cell(words, style=style if amount else "zero", exact=exact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: numbers are right-aligned; `prose` is left-aligned and may wrap."""

    heading: str
    code: str = ""
    """Code behind the heading."""
    style: str = ""
    prose: bool = False
    page_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row: its name, code behind it, then a cell for each column but the first."""

    name: str
    code: str = ""
    cells: tuple[Cell, ...]
    note: str = ""
    """A line below the row, over all columns."""
    style: str = ""
    """Style of the name."""
    exact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; a terminal too narrow for it prints a sentence for each row."""

    name: str
    """Its description, for screen readers."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    style: str = ""
    captioned: bool = False
    """Whether a page shows the name above it."""


def number_columns(*headings: str, page_only: bool = False) -> tuple[Column, ...]:
    """A column of numbers under each heading."""
    return tuple(Column(heading=words, page_only=page_only) for words in headings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Similar instructions of one program, with a few lines of their HLO."""

    program: str
    cell: str
    words: str
    sources: tuple[str, ...]
    hlo: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractRow:
    """A contract row as text."""

    collective: str
    scope: str
    words: str
    formula: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceItem:
    """Bytes beyond the plan at one scope: collective, cause, remedy, evidence."""

    amount: str
    arm: str
    """The arm that moves more, or `Every arm`."""
    collective: str
    """`all-gather over tp`."""
    scope: str
    verdict: str
    cause: str
    sentence: str
    remedy: str
    executions: str
    instructions: int
    by_arm: str
    """`TorchXLA 805 MB, JAX 0 B`; empty without another arm."""
    sources: tuple[tuple[str, str], ...]
    """Source lines and their bytes, the most first."""
    absent_in: tuple[str, ...]
    """Control cells without any of these bytes."""
    control: str
    """What the controls show."""
    contract: tuple[ContractRow, ...]
    """The rows that it satisfies."""
    near: tuple[ContractRow, ...]
    """If it satisfies none: the contract rows of its scope."""
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Differences, largest first; a terminal's short form prints the first few, two lines each."""

    heading: str
    items: tuple[DifferenceItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Collapsible blocks under a summary; closed on a page."""

    summary: str
    blocks: "Blocks"
    terminal: Shown = Shown.NOTHING


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that a terminal's short form leaves out."""

    blocks: "Blocks"


@dataclass(frozen=True, slots=True)
class PageOnly:
    """Blocks that a terminal does not print."""

    blocks: "Blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Widget:
    """A page-only drawing: a template of `compare.render`, and its values."""

    template: str
    values: Mapping[str, object]


Block = Heading | Sentence | Bullets | Table | Differences | Fold | Details | PageOnly | Widget
Blocks = Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part of a report.  A terminal prints title and lead on one line."""

    anchor: str
    title: str
    link: str
    """Its name in the page's table of contents."""
    lead: str = ""
    blocks: Blocks
