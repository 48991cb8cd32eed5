"""Tables in TOML, read into records: a key that is unknown, missing or of another type is one error."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from meshes.models import MODELS, Model

T = TypeVar("T")


class TableError(ValueError):
    """A table that cannot be read: which, where in it, and what is wrong."""


class Record(msgspec.Struct, forbid_unknown_fields=True):
    """What one table of a file holds: its fields are the keys, those without a default are required."""


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path.name}: {error}") from None


def convert(table: object, kind: type[T], *, where: str) -> T:
    """A record of a table, or of any type that holds some.

    where: the file, and the entry by its name, for the error.
    """
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise TableError(f"{where}: {error}") from None


def find(name: str, table: Mapping[str, T], *, where: str, what: str) -> T:
    """What has this name in a table."""
    if name not in table:
        raise TableError(f"{where}: there is no {what} {name!r}; there are {', '.join(table)}")
    return table[name]


def read_model(words: str | Mapping[str, Any], models: dict[str, Model], *, where: str) -> Model:
    """A model by its name, of these or of the presets; or one `like` it, in which some fields are others."""
    if isinstance(words, str):
        return find(words, models | MODELS, where=where, what="model")
    changed = {name: value for name, value in words.items() if name != "like"}
    if unknown := set(changed) - {field.name for field in fields(Model)}:
        raise TableError(f"{where}: a model has no {', '.join(sorted(unknown))}")
    return replace(find(words.get("like", ""), models, where=where, what="model"), **changed)
