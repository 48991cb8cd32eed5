"""The law table, a TOML file in `tables/` for each parallelism: what it costs and why, and the laws of its meshes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.laws.law import (
    ALL,
    BATCH,
    DENSE,
    EINSUM,
    GSPMD,
    MOE,
    PHASES,
    SDPA,
    SEQ,
    SHARDY,
    TORCHXLA,
    Law,
    Program,
    Setting,
)
from tests.tables import Record, TableError, convert, find, read_model, read_toml

FOLDER = Path(__file__).with_name("tables")
FILES = ("tensor", "data", "pipeline", "sequence", "experts", "context", "rules_off", "copies", "real", "cpu")
"""Of the chapters, in their order on the page."""

PROGRAMS = {program.title: program for program in ALL}
MODELS = {"dense": DENSE, "experts": MOE}


@dataclass(frozen=True, slots=True)
class Chapter:
    """One parallelism."""

    title: str
    text: str
    settings: tuple[Setting, ...]


class KindTable(Record):
    """What rows of one kind have in common: fields of a `Law`.  `note`: its key in [notes]."""

    programs: tuple[str, ...] = tuple(PROGRAMS)
    each: int = 1
    what: str = ""
    note: str = ""
    finding: bool = False


class KindsTable(Record):
    """kinds.toml."""

    notes: dict[str, str]
    kinds: dict[str, KindTable]


class SettingTable(Record):
    """A `Setting` as a chapter has it."""

    mesh: str
    laws: tuple[tuple[str, ...], ...]
    """`block kind@axes`, the pass, bytes in prefill and in decode (empty: it is not there); and the kind of row."""
    model: str | dict[str, Any] = "dense"
    off: tuple[str, ...] = ()
    batch: int = BATCH
    seq: int = SEQ
    layers: int = 6
    ticks: int = 1
    phases: tuple[str, ...] = PHASES
    programs: tuple[str, ...] = tuple(PROGRAMS)
    backend: str = "tpu"


class ChapterTable(Record):
    """A chapter's file."""

    title: str
    text: str
    setting: list[dict[str, Any]]


def read_kinds(path: Path) -> KindsTable:
    """The kinds of rows, each with the text of its note."""
    return convert(read_toml(path), KindsTable, where=path.name)


def read_chapter(path: Path, kinds: KindsTable) -> Chapter:
    """A chapter.  Raises `TableError` for a key that is unknown or missing, with the setting's mesh."""
    chapter = convert(read_toml(path), ChapterTable, where=path.name)
    return Chapter(chapter.title, chapter.text, tuple(_setting(table, path, kinds) for table in chapter.setting))


def _setting(table: dict[str, Any], path: Path, kinds: KindsTable) -> Setting:
    where = f"{path.name}, {table.get('mesh', 'a setting without a mesh')}"
    words = convert(table, SettingTable, where=where)
    return Setting(
        mesh=words.mesh,
        laws=tuple(_law(row, kinds, where=where) for row in words.laws),
        model=read_model(words.model, MODELS, where=where),
        off=words.off,
        batch=words.batch,
        seq=words.seq,
        layers=words.layers,
        ticks=words.ticks,
        phases=words.phases,
        programs=_programs(words.programs, where=where),
        backend=words.backend,
    )


def _law(row: tuple[str, ...], kinds: KindsTable, *, where: str) -> Law:
    if len(row) not in (4, 5):
        raise TableError(f"{where}: a row is [block kind@axes, pass, prefill, decode] and its kind, not {list(row)}")
    name, per, prefill, decode, *rest = row
    block, _, collective = name.partition(" ")
    kind = find(rest[0], kinds.kinds, where=where, what="kind") if rest else KindTable()
    return Law(
        block,
        collective,
        per,
        prefill or None,
        decode or None,
        programs=_programs(kind.programs, where=where),
        each=kind.each,
        what=kind.what,
        note=kind.note and find(kind.note, kinds.notes, where=where, what="note"),
        finding=kind.finding,
    )


def _programs(titles: tuple[str, ...], *, where: str) -> tuple[Program, ...]:
    return tuple(find(title, PROGRAMS, where=where, what="program") for title in titles)


KINDS = read_kinds(FOLDER / "kinds.toml")
CHAPTERS = tuple(read_chapter(FOLDER / f"{name}.toml", KINDS) for name in FILES)


def settings() -> list[Setting]:
    return [setting for chapter in CHAPTERS for setting in chapter.settings]


def setting_of(mesh: str) -> Setting:
    """The first setting of this mesh."""
    return next(setting for setting in settings() if setting.mesh == mesh)


def laws(arm: str) -> list[tuple[Setting, str, Program]]:
    """All that is compiled of one arm: setting, phase, program."""
    return [
        (setting, phase, program)
        for setting in settings()
        for phase in setting.phases
        for program in setting.programs
        if program.arm == arm
    ]


PLAIN = ((SHARDY, "prefill"), (GSPMD, "decode"), (SDPA, "prefill"), (EINSUM, "decode"))
"""Of the two programs that an arm has of a setting, the one that a plain `pytest` compiles of each phase."""


def is_long(setting: Setting, phase: str, program: Program) -> bool:
    """Whether only `pytest -m long` compiles it.

    Of a setting a plain run compiles one phase in one arm and the other phase in the other arm, by turns: so the laws
    of either phase are held by a program, every arm has every setting, and every program has every other setting.
    """
    programs = [other for other in setting.programs if other.arm == program.arm]
    if len(programs) > 1 and (program, phase) not in PLAIN:
        return True
    if len(setting.phases) == 1 or len(programs) == len(setting.programs):
        return False
    turn = (settings().index(setting) + (program in TORCHXLA)) % len(setting.phases)
    return phase != setting.phases[turn]


def parameters(arm: str) -> list[Any]:
    """Of a test: setting, phase, program of each of its laws."""
    return [
        pytest.param(
            *row, id=f"{row[0].name} {row[1]} {row[2].title}", marks=[pytest.mark.long] if is_long(*row) else []
        )
        for row in laws(arm)
    ]
