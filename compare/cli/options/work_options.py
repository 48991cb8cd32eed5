"""The options of work that compiles: frameworks, programs beside the default ones, time limit, cache."""

import argparse

from compare.cli.options.numbers import seconds
from compare.run.choices import DEFAULT_CONTROLS, FRAMEWORKS, TIMEOUT_S
from meshes.process.command_line import Parser

Group = Parser | argparse._ArgumentGroup


def add_frameworks(group: Group, says: str = "comma-separated frameworks") -> None:
    group.add_argument("--framework", "--arm", dest="arm", metavar="LIST", default=",".join(FRAMEWORKS), help=says)


def add_controls(group: Group, says: str) -> None:
    group.add_argument("--controls", metavar="LIST", default=",".join(DEFAULT_CONTROLS), help=says)


def add_witnesses(group: Group, says: str) -> None:
    group.add_argument("--reference-model", "--witness", dest="witness", metavar="LIST", default="", help=says)


def add_limits(group: Group, no_cache: str = "recompile everything, and write nothing to the cache") -> None:
    """Add --timeout and --no-cache; no_cache: what the latter does."""
    limit = "time limit of each process, in seconds"
    group.add_argument("--timeout", metavar="S", type=seconds, default=TIMEOUT_S, help=limit)
    group.add_argument("--no-cache", action="store_true", help=no_cache)
