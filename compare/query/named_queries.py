"""The queries that ship: each a .sql file, whose first line says what it answers."""

from collections.abc import Mapping
from importlib.resources import files

from compare.query.errors import QueryError
from meshes.process.one_line import quote

_FOLDER = files("compare.query").joinpath("named")
_SQL = ".sql"


def list_queries() -> Mapping[str, str]:
    """Name -> what it answers."""
    names = sorted(file.name.removesuffix(_SQL) for file in _FOLDER.iterdir() if file.name.endswith(_SQL))
    return {name: read_query(name).partition("\n")[0].removeprefix("-- ") for name in names}


def read_query(name: str) -> str:
    """The text of the query of this name.  Raises `QueryError` where none ships under it."""
    file = _FOLDER.joinpath(name + _SQL)
    if not name.replace("-", "").isalpha() or not file.is_file():
        raise QueryError(f"no query is named {quote(name)}; there are {', '.join(list_queries())}")
    return file.read_text(encoding="utf-8")
