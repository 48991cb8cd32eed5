"""The queries that ship: each a .sql file, whose first line says what it answers."""

import os
from collections.abc import Mapping

from compare.query.errors import QueryError
from meshes.process.one_line import quote

_FOLDER = os.path.join(os.path.dirname(__file__), "named")
_SQL = ".sql"


def name_queries() -> list[str]:
    return sorted(name.removesuffix(_SQL) for name in os.listdir(_FOLDER) if name.endswith(_SQL))


def list_queries() -> Mapping[str, str]:
    """Name -> what it answers."""
    return {name: read_query(name).partition("\n")[0].removeprefix("-- ") for name in name_queries()}


def read_query(name: str) -> str:
    """The text of the query of this name.  Raises `QueryError` where none ships under it."""
    if name not in name_queries():
        raise QueryError(f"no query is named {quote(name)}; there are {', '.join(name_queries())}")
    with open(os.path.join(_FOLDER, name + _SQL), encoding="utf-8") as file:
        return file.read()
