"""Answers of queries as a text uses them: rows, one of them, and numbers with their units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

from compare.render.units import UNKNOWN, bytes_text, ratio_text, time_text
from docs.study.build.errors import StudyError

Value = str | int | float | bool | None | list["Value"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row; its columns are its attributes, too: `row.step_ns`."""

    query: str
    values: Mapping[str, Value]

    def __getattr__(self, name: str) -> Value:
        if name not in self.values:
            raise StudyError(f"the query {self.query} has no column {name}; it has {', '.join(self.values)}")
        return self.values[name]

    def number(self, name: str) -> float:
        """A column's value as a number.  Raises `StudyError` where it is none."""
        value = getattr(self, name)
        if isinstance(value, int | float):
            return float(value)
        raise StudyError(f"{name} is {value!r} in a row of the query {self.query}; the study wants a number")

    def series(self, name: str) -> list[float]:
        """A column's list of numbers, null as 0."""
        values = getattr(self, name)
        if not isinstance(values, list):
            raise StudyError(f"{name} is {values!r} in a row of the query {self.query}; the study wants a list")
        return [float(value) if isinstance(value, int | float) else 0.0 for value in values]


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of one query, or those of them that fit: `answer.where(phase="decode").one()`."""

    query: str
    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **values: Value) -> "Answer":
        """The rows with these values; a list: with any of them."""
        wanted = {name: value if isinstance(value, list) else [value] for name, value in values.items()}
        return Answer(
            self.query,
            tuple(row for row in self.rows if all(getattr(row, name) in each for name, each in wanted.items())),
        )

    def one(self, **values: Value) -> Row:
        """The only row with these values.  Raises `StudyError` where there is another number of them."""
        rows = self.where(**values).rows
        if len(rows) != 1:
            said = ", ".join(f"{name}={value}" for name, value in values.items()) or "no condition"
            raise StudyError(f"the query {self.query} has {len(rows)} rows with {said}; the text wants one")
        return rows[0]

    def column(self, name: str) -> list[Value]:
        return [getattr(row, name) for row in self.rows]

    def numbers(self, name: str) -> list[float]:
        """A column without its nulls."""
        return [float(value) for value in self.column(name) if isinstance(value, int | float)]

    def highest(self, name: str) -> Row:
        """The row with the largest value."""
        return max(self._with(name), key=lambda row: row.number(name))

    def lowest(self, name: str) -> Row:
        """The row with the smallest value."""
        return min(self._with(name), key=lambda row: row.number(name))

    def _with(self, name: str) -> list[Row]:
        rows = [row for row in self.rows if getattr(row, name) is not None]
        if not rows:
            raise StudyError(f"the query {self.query} has no row with a value of {name}")
        return rows


def make_answer(query: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Answer:
    """From what DuckDB gives: decimals become floats, and what is not finite becomes null."""
    made = (Row(query, dict(zip(columns, map(_plain, row), strict=True))) for row in rows)
    return Answer(query, tuple(made))


def _plain(value: object) -> Value:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, str | int | float | bool | None):
        return value
    return str(value)


def percent(value: float | None) -> str:
    """`37 %`; two digits below ten."""
    if value is None:
        return UNKNOWN
    share = 100 * value
    return f"{share:.0f} %" if abs(share) >= 9.95 else f"{share:.1f} %"


def ratio(value: float | None) -> str:
    """`1.55 ×`, `143 ×`."""
    return ratio_text(value)


FORMATS: Mapping[str, Callable[..., str]] = {
    "bytes": bytes_text,
    "time": time_text,
    "ratio": ratio,
    "percent": percent,
}
"""Filters of a text."""

_ENDINGS = (
    ("_bytes", bytes_text),
    ("bytes_per_token", bytes_text),
    ("_bytes_after", bytes_text),
    ("_ns", time_text),
    ("_share", percent),
    ("_over_inherent", ratio),
    ("_over_floor", ratio),
    ("_over_fastest", ratio),
    ("_times", ratio),
)


def value_text(column: str, value: Value) -> str:
    """A cell of a table, by the unit that its column's name says."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        for ending, text in _ENDINGS:
            if column.endswith(ending):
                return str(text(value))
        if isinstance(value, int) or abs(value) >= 1000:
            return f"{value:,.0f}"
        return f"{value:.3g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else value
