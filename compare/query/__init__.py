"""Any question in SQL, over any number of run folders: `from compare.query import query_runs`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare.query.engine import query_runs

__all__ = ["query_runs"]


def __getattr__(name: str) -> object:
    """Loaded on first use: the command line lists the queries that ship without an engine."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compare.query.engine import query_runs

    return query_runs
