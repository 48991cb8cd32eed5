"""A study's text: Markdown whose numbers, tables and figures come from queries.

In the text: `rows("name")` is the answer of queries/name.sql or of a query that ships with `compare.query`; `table`,
`figure` and `query` show one; `see("name")` names a figure or a table by its number; `claim(condition, "words")` gives
the words, and is an error where the condition does not hold, so that no sentence outlives its data.

A text may come from others: it is filled in by jinja's sandbox, which reaches these names and no Python.
"""

import re
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from compare.render.picture import Picture
from docs.study.build.answers import FORMATS, Answer, Row, value_text
from docs.study.build.errors import StudyError
from meshes.process.errors import OneLineError

FIGURES = "figures"
"""The folder of the pictures, beside the text."""

MOST_ROWS = 8
"""Of a table that is open; a longer one is folded."""

_SEE = "\ue000{}\ue001"
"""A mark for the number of a figure or table, which may come later in the text."""


@dataclass(slots=True)
class Text:
    """What a text may call, and what it has called."""

    answers: Callable[[str], Answer]
    """Name of a query -> its rows."""
    sql: Callable[[str], str]
    """Name of a query -> its text."""
    names: Collection[str]
    """The queries that have a figure."""
    draw: Callable[[str], Picture]
    """Name of a query -> its figure."""
    own: Collection[str]
    """The queries that are the study's own; the others ship with `compare.query`."""
    data: str
    """The folder of the data, as a reader types it."""
    traces: tuple[str, ...] = ()
    """The folders of the timelines that ship with the study."""
    pictures: dict[str, Picture] = field(default_factory=dict)
    """Those drawn so far, by name."""
    numbers: dict[str, str] = field(default_factory=dict)
    """Name of a figure or table -> `figure-3`, `table-1`."""

    def table(
        self,
        answer: Answer | Sequence[Row],
        columns: Mapping[str, str],
        *,
        name: str,
        caption: str,
        bold: Callable[[Row], bool] | None = None,
    ) -> str:
        """A numbered Markdown table of these columns: column -> its heading.  A long one is folded.

        name: by which `see` finds it.
        """
        rows = list(answer)
        numeric = {
            name for name in columns if rows and all(isinstance(getattr(row, name), int | float | None) for row in rows)
        }
        head = "| " + " | ".join(columns.values()) + " |"
        rule = "|" + "|".join("---:" if name in numeric else "---" for name in columns) + "|"
        lines = ["| " + " | ".join(_cell(name, row, bold) for name in columns) + " |" for row in rows]
        table = "\n".join([head, rule, *lines])
        anchor = self._number("table", name)
        title = f"Table {anchor.rpartition('-')[2]}."
        if len(rows) <= MOST_ROWS:
            return f'<a id="{anchor}"></a>**{title}** {caption}\n\n{table}'
        summary = re.sub("`(.*?)`", r"<code>\1</code>", f"<b>{title}</b> {caption} {len(rows)} rows.")
        return f'<a id="{anchor}"></a>\n<details><summary>{summary}</summary>\n\n{table}\n\n</details>'

    def figure(self, name: str) -> str:
        """The figure of a query, numbered, with its caption and a link to itself in full size."""
        if name not in self.names:
            raise StudyError(f"no figure is named {name}; there are {', '.join(self.names)}")
        if name not in self.pictures:
            self.pictures[name] = self.draw(name)
        anchor, path, caption = self._number("figure", name), f"{FIGURES}/{name}.svg", self.pictures[name].caption
        title = f"Figure {anchor.rpartition('-')[2]}."
        return f'<a id="{anchor}"></a>[![{caption}]({path})]({path})\n\n**{title}** {caption}'

    def see(self, name: str) -> str:
        """A link to a figure or table, by its number."""
        return _SEE.format(name)

    def fill_in_numbers(self, words: str) -> str:
        """The text with the numbers of what is shown in it.  Raises `StudyError` for what is not."""

        def link(match: re.Match[str]) -> str:
            if match[1] not in self.numbers:
                raise StudyError(f"the text refers to {match[1]}, which is no figure or table of it")
            kind, _, number = self.numbers[match[1]].partition("-")
            begins = match.string[: match.start()].rstrip("* \n")[-1:] in (".", "")
            return f"[{kind.capitalize() if begins else kind} {number}](#{kind}-{number})"

        return re.sub(_SEE.format("(.*?)"), link, words)

    def _number(self, kind: str, name: str) -> str:
        if name in self.numbers:
            raise StudyError(f"the text has two figures or tables named {name}")
        taken = sum(number.startswith(kind) for number in self.numbers.values())
        self.numbers[name] = f"{kind}-{taken + 1}"
        return self.numbers[name]

    def query(self, name: str) -> str:
        """How to ask the same, folded away."""
        which = f"--file {self.data.rpartition('/')[0]}/queries/{name}.sql" if name in self.own else f"--name {name}"
        command = f"python -m compare.query {self.data} {which}"
        return (
            f"<details><summary>The query: {name}</summary>\n\n```sh\n{command}\n```\n\n```sql\n"
            f"{self.sql(name).strip()}\n```\n\n</details>"
        )


def claim(condition: object, words: str) -> str:
    """The words, where the condition holds.  Raises `StudyError` where it does not."""
    if not condition:
        raise StudyError(f"the text says {words!r}, and the data do not")
    return words


def render_text(template: str, text: Text) -> str:
    """The Markdown.  Raises `StudyError` for a template that cannot be filled in."""
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    environment.filters |= FORMATS
    environment.globals |= {
        "rows": text.answers,
        "table": text.table,
        "figure": text.figure,
        "query": text.query,
        "see": text.see,
        "claim": claim,
        "traces": text.traces,
    }
    try:
        return text.fill_in_numbers(environment.from_string(template).render())
    except OneLineError:
        raise
    except SyntaxError as error:  # of Python, into which a template is compiled: its lines are not the template's
        raise StudyError(f"the text cannot be filled in: {error.msg}") from None
    except (
        TemplateError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        line = getattr(error, "lineno", None) or _line_of(error)
        raise StudyError(f"the text cannot be filled in{f', line {line}' if line else ''}: {error}") from None


def _line_of(error: Exception) -> int | None:
    """Of the template, in which it was raised."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return lines[-1] if lines else None


def _cell(name: str, row: Row, bold: Callable[[Row], bool] | None) -> str:
    words = value_text(name, getattr(row, name)).replace("|", "\\|")
    return f"**{words}**" if bold and bold(row) else words
