"""`python -m compare.simulate`: `cost`, `what-if` or `replay`, told apart by their first word."""

import sys
from collections.abc import Sequence
from importlib import import_module

from compare.simulate.graphs.request import is_graph_request


def main(argv: Sequence[str] | None = None) -> int:
    """A trace, or a run by ASTRA-sim's rules, is replayed; of any other folder it is asked what if."""
    words = list(sys.argv[1:] if argv is None else argv)
    is_folder = bool(words) and not words[0].startswith("-")
    name = "replay" if is_graph_request(words) else "what_if" if is_folder else "cost"
    status: int = import_module(f"compare.cli.{name}").main(words)
    return status
