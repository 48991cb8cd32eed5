"""The lessons of the gallery, from one tensor to a layer of experts: what `python -m compare.teach` shows.

A lesson is the file of its name beside this one: a header in TOML between `+++`, its story, and sections in Markdown.
`index.toml` has the chapters, in their order.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from compare.gallery.lesson_types.lesson import Alone, Deviation, Lesson, Move, evaluate_formula

FOLDER = Path(__file__).parent
SECTIONS = {"Rule": True, "Border": False, "Question": True, "Answer": True}
"""Headings behind the story -> whether each lesson has them."""
NEEDED = ("title", "standing", "mesh", "sizes", "takes", "gives", "needs")
OPTIONAL = ("dtypes", "absent", "alone", "alone_words", "but")
_FILE = re.compile(r"\+\+\+\n(.*?)\n\+\+\+\n(.*)", re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)

Table = dict[str, object]


class LessonError(ValueError):
    """No lesson has this name, or its file is none."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """Lessons that belong together."""

    title: str
    words: str
    lessons: tuple[Lesson, ...]


def read_lesson(name: str, text: str) -> Lesson:
    """The lesson in a file.  Raises `LessonError`, one line with the name and the key that is wrong."""
    match = _FILE.fullmatch(text)
    if not match:
        raise LessonError(f"{name}.md: a lesson has a header in TOML between +++ and +++, and a story behind it")
    try:
        header: Table = tomllib.loads(match[1])
    except tomllib.TOMLDecodeError as error:
        raise LessonError(f"{name}.md: its header is no TOML: {error}") from None
    _check_keys(f"{name}.md", header, NEEDED, OPTIONAL)
    story, *rest = _HEADING.split(match[2])
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    _check_keys(f"{name}.md", sections, [title for title, needed in SECTIONS.items() if needed], SECTIONS)
    prose = {title.lower(): _join_lines(words) for title, words in sections.items()}
    shapes = ("mesh", "sizes", "takes", "gives", "dtypes", "absent", "title", "standing", "alone_words")
    try:
        lesson = Lesson(
            name=name,
            story=story.strip(),
            needs=_moves(name, header["needs"]),
            alone=tuple(_alone(name, row) for row in _tables(name, header.get("alone", []))),
            but=tuple(_deviation(name, row) for row in _tables(name, header.get("but", []))),
            **{key: header[key] for key in shapes if key in header},  # type: ignore[arg-type]
            **prose,  # type: ignore[arg-type]
        )
        for move in (*lesson.needs, *(move for other in lesson.but for move in other.moves)):
            evaluate_formula(move.formula, lesson.letters)
            lesson.group_size(move)
    except KeyError as error:
        raise LessonError(f"{name}.md: {error} is neither a size nor an axis of its mesh") from None
    except ValueError as error:
        raise LessonError(f"{name}.md: {error}") from None
    return lesson


def _moves(name: str, rows: object) -> tuple[Move, ...]:
    for row in (tables := _tables(name, rows)):
        _check_keys(f"{name}.md: a collective", row, ("collective", "formula", "what"), ("times", "senders", "group"))
    return tuple(Move(**row) for row in tables)  # type: ignore[arg-type]


def _alone(name: str, row: Table) -> Alone:
    _check_keys(f"{name}.md: alone", row, ("name", "dims", "axes"), ("partial",))
    axes = tuple(axis or None for axis in cast(list[str], row["axes"]))
    return Alone(str(row["name"]), str(row["dims"]), axes, str(row.get("partial", "")))


def _deviation(name: str, row: Table) -> Deviation:
    _check_keys(f"{name}.md: but", row, ("programs", "moves", "why"), ())
    return Deviation(tuple(cast(list[str], row["programs"])), _moves(name, row["moves"]), str(row["why"]))


def _tables(name: str, rows: object) -> list[Table]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise LessonError(f"{name}.md: {rows!r} is no list of tables")
    return rows


def _check_keys(where: str, table: Mapping[str, object], needed: Sequence[str], known: Iterable[str]) -> None:
    if missing := [key for key in needed if key not in table]:
        raise LessonError(f"{where} lacks {missing[0]!r}")
    if unknown := sorted(set(table) - {*needed, *known}):
        raise LessonError(f"{where} has {unknown[0]!r}; known are {', '.join((*needed, *known))}")


def _join_lines(words: str) -> str:
    """A section as one string: lines joined, paragraphs apart."""
    return "\n\n".join(" ".join(part.split()) for part in words.strip().split("\n\n"))


def _text_of(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def _read_all() -> tuple[tuple[Chapter, ...], Mapping[str, str]]:
    index = tomllib.loads((FOLDER / "index.toml").read_text(encoding="utf-8"))
    chapters = tuple(
        Chapter(
            chapter["title"],
            chapter["words"],
            tuple(read_lesson(name, _text_of(name)) for name in chapter["lessons"]),
        )
        for chapter in index["chapter"]
    )
    return chapters, index["ten_first"]


CHAPTERS, TEN_FIRST = _read_all()
LESSONS = tuple(lesson for chapter in CHAPTERS for lesson in chapter.lessons)


def find_lesson(name: str) -> tuple[Lesson, ...]:
    """The lesson of this name.  Raises `LessonError` for any other."""
    wanted = name.replace("_", "-")
    lessons = tuple(lesson for lesson in LESSONS if lesson.name == wanted)
    if not lessons:
        near = get_close_matches(wanted, [lesson.name for lesson in LESSONS], n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise LessonError(f"there is no pattern {name!r}; {hint}--list names all of them")
    return lessons
