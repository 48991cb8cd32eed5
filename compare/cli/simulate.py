"""`python -m compare.simulate`: `cost`, `what-if` or `replay`, told apart by their first word."""

import sys
from collections.abc import Sequence
from importlib import import_module

from meshes.process.command_line import path


def main(argv: Sequence[str] | None = None) -> int:
    """A trace, or a run by ASTRA-sim's rules, is replayed; of any other folder it is asked what if."""
    words = list(sys.argv[1:] if argv is None else argv)
    is_folder = bool(words) and not words[0].startswith("-")
    name = "cost" if not is_folder else "replay" if _is_replayed(words) else "what_if"
    status: int = import_module(f"compare.cli.{name}").main(words)
    return status


def _is_replayed(words: Sequence[str]) -> bool:
    """Whether a command line is of a Chakra folder, or names a run and ASTRA-sim's rules."""
    if any(word == "--as" or word.startswith("--as=") for word in words):
        return True
    from compare.run.folder.replace_folder import CASE

    folder = path(words[0])
    return folder.is_dir() and not (folder / CASE).is_file() and any(folder.glob("*.et"))
