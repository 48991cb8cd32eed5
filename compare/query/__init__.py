"""Any question in SQL, over any number of run folders: `from compare.query import query_runs`."""

from compare.query.engine import query_runs

__all__ = ["query_runs"]
