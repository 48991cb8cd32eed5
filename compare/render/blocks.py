"""What a report says, as a list of blocks: arranged once, shown by two back ends, `terminal.py` and `html.py`.

Each kind of block has its own rule for a terminal, which prints a short form unless it is asked for the details.
Words are plain text: each back end makes what a program wrote harmless in its own way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a sentence is meant; on a page also the name of its style."""

    PLAIN = "plain"
    STRONG = "strong"
    SOFT = "how"
    WARNING = "warning"
    ERROR = "error"


class Shown(StrEnum):
    """What a terminal prints of a fold that a page shows closed."""

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
    """A paragraph.  What stands in backticks is code."""

    words: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences of equal rank."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table; `style` is a verdict or `zero`, `exact` the value in full, which a page shows on demand."""

    words: str
    style: str = ""
    exact: str = ""
    soft: str = ""
    """What stands behind it in smaller letters; a page only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: numbers are aligned right, `prose` left, and prose may wrap."""

    heading: str
    code: str = ""
    """What stands behind the heading as code."""
    style: str = ""
    prose: bool = False
    page_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row: its name, with what stands behind that as code, then a cell for each column but the first."""

    name: str
    code: str = ""
    cells: tuple[Cell, ...]
    note: str = ""
    """A line below the row, over all columns."""
    style: str = ""
    """Of the name."""
    exact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; in a terminal too narrow for it, a sentence for each row."""

    name: str
    """What it shows, for who cannot see it."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    style: str = ""
    captioned: bool = False
    """Whether a page shows the name above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Instructions of one program that are alike, with a few lines of their HLO."""

    program: str
    cell: str
    words: str
    sources: tuple[str, ...]
    hlo: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractRow:
    """A row of the contract in words."""

    collective: str
    scope: str
    words: str
    formula: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Bytes beyond the plan at one place: what, where, why, and what removes them."""

    amount: str
    arm: str
    """The arm that moves more, or that every arm does."""
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
    """`TorchXLA 805 MB, JAX 0 B`; empty where there is nothing to compare with."""
    sources: tuple[tuple[str, str], ...]
    """Lines of source and their bytes, the most first."""
    absent_in: tuple[str, ...]
    """Control cells in which nothing of it is left."""
    control: str
    """What the controls show of it."""
    contract: tuple[ContractRow, ...]
    """The rows that it satisfies."""
    near: tuple[ContractRow, ...]
    """Where it satisfies none: the rows of its scope."""
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Differences, the largest first; the short form of a terminal has the first few, of two lines each."""

    heading: str
    items: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a page shows closed, under a summary."""

    summary: str
    blocks: "Blocks"
    terminal: Shown = Shown.NOTHING


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that the short form of a terminal leaves out."""

    blocks: "Blocks"


@dataclass(frozen=True, slots=True)
class PageOnly:
    """Blocks that a terminal has no room for, or says in another way."""

    blocks: "Blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Widget:
    """A drawing that only a page can show: a template of this room, and what it is given."""

    template: str
    values: Mapping[str, object]


Block = Heading | Sentence | Bullets | Table | Differences | Fold | Details | PageOnly | Widget
Blocks = Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part with a title.  A terminal prints title and lead as one line."""

    anchor: str
    title: str
    link: str
    """Its name in the page's table of contents."""
    lead: str = ""
    blocks: Blocks
