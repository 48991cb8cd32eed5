"""The table of planted defects: a TOML file in `defects/` for each chapter, and lines and settings that they name."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from tests.planted.defect import ARMS, DENSE, EXPERTS, Defect, Row, Setting, Site
from tests.tables import Record, TableError, convert, find, read_model, read_toml

FOLDER = Path(__file__).with_name("defects")
FILES = ("weights", "pins", "missing_pins", "stream", "statistics", "steps", "by_hand", "calls", "harmless")
"""Of the chapters, in their order on the page."""

Line = tuple[str, str]
"""A file of a twin, and the text of a line in it."""
Lines = Mapping[str, Mapping[str, Line]]
"""Name -> arm -> line."""
Pairs = tuple[tuple[str, str], ...]


class SettingTable(Record):
    """A setting in settings.toml: its fields are those of a `Setting`."""

    mesh: str
    numbers: str
    model: str | dict[str, Any] = "small"
    seq: int = 128


class SiteTable(Record):
    """Where an arm's line is changed: `line` and `reported` are a name in lines.toml, or a file and a text."""

    line: str | Line
    new: str = ""
    replace: Line | None = None
    """A piece of the line and what stands there instead: the rest of the line is `new` as it was."""
    reported: str | Line = ("", "")


class DefectTable(Record):
    """A `Defect` as a chapter has it.  What ends with `_of` names a defect further up: its site, rows or why."""

    name: str
    what: str
    setting: str = "dp2tp4"
    phase: str = "prefill"
    jax: SiteTable | None = None
    torchxla: SiteTable | None = None
    both: SiteTable | None = None
    """Of both arms, where it is written alike."""
    jax_of: str = ""
    rows: tuple[tuple[str | int | Line, ...], ...] = ()
    """`scope kind@axes`, times, bytes of one, and the verdict; or each verdict with its bytes a step."""
    rows_of: str = ""
    gone: tuple[str, ...] = ()
    unserved: dict[str, str] = msgspec.field(default_factory=dict)
    why: str = ""
    why_of: str = ""


class ChapterTable(Record):
    """A chapter's file."""

    title: str
    text: str
    defect: list[dict[str, Any]]
    style: str = "pinned"
    """Of its settings."""


def read_settings(path: Path) -> dict[str, Setting]:
    """The cases that defects are planted in, by name."""
    models = {DENSE.name: DENSE, EXPERTS.name: EXPERTS}
    settings = {}
    for name, table in read_toml(path).items():
        where = f"{path.name}, {name}"
        words = convert(table, SettingTable, where=where)
        chosen = read_model(words.model, models, where=where)
        settings[name] = Setting(name=name, mesh=words.mesh, model=chosen, seq=words.seq, numbers=words.numbers)
    return settings


def read_lines(path: Path) -> Lines:
    """The lines that have a name."""
    lines = convert(read_toml(path), dict[str, dict[str, Line]], where=path.name)
    return {name: dict.fromkeys(ARMS, by_arm["both"]) if "both" in by_arm else by_arm for name, by_arm in lines.items()}


def read_chapter(path: Path, settings: Mapping[str, Setting], lines: Lines) -> tuple[ChapterTable, tuple[Defect, ...]]:
    """A chapter and its defects.  Raises `TableError` for a key that is unknown or missing, with the defect's name."""
    chapter = convert(read_toml(path), ChapterTable, where=path.name)
    defects: dict[str, Defect] = {}
    for table in chapter.defect:
        where = f"{path.name}, {table.get('name', 'a defect without a name')}"
        words = convert(table, DefectTable, where=where)
        setting = replace(find(words.setting, settings, where=where, what="setting"), style=chapter.style)

        def earlier(name: str, where: str = where) -> Defect:
            return find(name, defects, where=where, what="defect further up")

        sites = {
            arm: _site(site, arm, lines, where=where)
            for key in table  # in the order of the file
            if isinstance(site := getattr(words, key), SiteTable)
            for arm in (ARMS if key == "both" else (key,))
        }
        if words.jax_of:
            sites = {"jax": earlier(words.jax_of).sites["jax"], **sites}
        defects[words.name] = Defect(
            name=words.name,
            chapter=chapter.title,
            what=words.what,
            setting=setting,
            phase=words.phase,
            sites=sites,
            rows=earlier(words.rows_of).rows if words.rows_of else tuple(_row(row, where=where) for row in words.rows),
            gone=tuple(_place(name, where=where) for name in words.gone),
            unserved=words.unserved,
            why=earlier(words.why_of).why if words.why_of else words.why,
        )
    return chapter, tuple(defects.values())


def _line(words: str | Line, arm: str, lines: Lines, *, where: str) -> Line:
    if not isinstance(words, str):
        return words
    return find(arm, find(words, lines, where=where, what="line"), where=where, what=f"line {words!r} of")


def _site(words: SiteTable, arm: str, lines: Lines, *, where: str) -> Site:
    file, old = _line(words.line, arm, lines, where=where)
    if bool(words.new) == bool(words.replace):
        raise TableError(f"{where}: {arm} has a line, and either `new` or `replace`")
    new = words.new
    if words.replace:
        piece, other = words.replace
        if old.count(piece) != 1:
            raise TableError(f"{where}: {piece!r} stands {old.count(piece)} times in {old!r}, not once")
        new = old.replace(piece, other)
    return Site(file, old, new, _line(words.reported, arm, lines, where=where))


def _row(words: tuple[str | int | Line, ...], *, where: str) -> Row:
    match words:
        case [str(name), int(times), str(moves), str(verdict)]:
            return Row(*_place(name, where=where), str(times), moves, verdict)
        case [str(name), int(times), str(moves), tuple(first), *others]:
            return Row(
                *_place(name, where=where), str(times), moves, dict(convert([first, *others], Pairs, where=where))
            )
    raise TableError(
        f"{where}: a row is [scope kind@axes, times, bytes, verdict], or has pairs [verdict, bytes]: {words}"
    )


def _place(name: str, *, where: str) -> tuple[str, str]:
    scope, space, collective = name.partition(" ")
    if not space:
        raise TableError(f"{where}: {name!r} is not a scope, and kind@axes")
    return scope, collective


SETTINGS = read_settings(FOLDER / "settings.toml")
LINES = read_lines(FOLDER / "lines.toml")
_READ = [read_chapter(FOLDER / f"{name}.toml", SETTINGS, LINES) for name in FILES]
CHAPTERS: Mapping[str, str] = {chapter.title: chapter.text for chapter, _ in _READ}
DEFECTS: tuple[Defect, ...] = tuple(defect for _, defects in _READ for defect in defects)


def changes() -> tuple[tuple[Defect, str], ...]:
    """Each change of one arm: a defect and the arm."""
    return tuple((defect, arm) for defect in DEFECTS for arm in defect.sites)
