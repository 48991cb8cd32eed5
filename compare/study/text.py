"""A study's text: Markdown whose numbers, tables and figures come from queries.

In the text: `rows("name")` is the answer of queries/name.sql or of a query that ships with `compare.query`; `table`,
`figure` and `query` show one; `claim(condition, "words")` gives the words, and is an error where the condition does
not hold, so that no sentence outlives its data.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from jinja2 import Environment, StrictUndefined, TemplateError

from compare.render.picture import Picture
from compare.study.answers import FORMATS, Answer, Row, value_text
from compare.study.errors import StudyError

FIGURES = "figures"
"""The folder of the pictures, beside the text."""


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
    pictures: dict[str, Picture] = field(default_factory=dict)
    """Those drawn so far, by name."""

    def table(
        self, answer: Answer | Sequence[Row], columns: Mapping[str, str], *, bold: Callable[[Row], bool] | None = None
    ) -> str:
        """A Markdown table of these columns: column -> its heading."""
        rows = list(answer)
        numeric = {
            name for name in columns if rows and all(isinstance(getattr(row, name), int | float | None) for row in rows)
        }
        head = "| " + " | ".join(columns.values()) + " |"
        rule = "|" + "|".join("---:" if name in numeric else "---" for name in columns) + "|"
        lines = ["| " + " | ".join(_cell(name, row, bold) for name in columns) + " |" for row in rows]
        return "\n".join([head, rule, *lines])

    def figure(self, name: str) -> str:
        """The figure of a query, with its caption."""
        if name not in self.names:
            raise StudyError(f"no figure is named {name}; there are {', '.join(self.names)}")
        if name not in self.pictures:
            self.pictures[name] = self.draw(name)
        return f"![{self.pictures[name].caption}]({FIGURES}/{name}.svg)"

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
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    environment.filters |= FORMATS
    environment.globals |= {
        "rows": text.answers, "table": text.table, "figure": text.figure, "query": text.query, "claim": claim,
    }  # fmt: skip
    try:
        return environment.from_string(template).render()
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        raise StudyError(f"the text cannot be filled in{f', line {line}' if line else ''}: {error}") from None


def _cell(name: str, row: Row, bold: Callable[[Row], bool] | None) -> str:
    words = value_text(name, getattr(row, name)).replace("|", "\\|")
    return f"**{words}**" if bold and bold(row) else words
