"""The options that say how the names of somebody else's program are read: `--scopes MAP.json --owns PART[,PART]`."""

import argparse
from pathlib import Path

from compare.hlo.text.errors import HloError
from compare.hlo.text.metadata import SourceNames
from meshes.process.documents import read_json
from meshes.process.errors import MeshError


def add_names(parser: argparse.ArgumentParser) -> None:
    """The options of names; a program that was saved has its own, which these replace."""
    add = parser.add_argument
    add(
        "--scopes",
        metavar="MAP.json",
        type=Path,
        help='a JSON object of regular expressions, searched in op_name, and their scopes: {"o_proj":'
        ' "layer.attention.out"}',
    )
    add(
        "--owns",
        metavar="PART[,PART]",
        help="parts of paths of installed files that count as your source, like transformers/models/",
    )


def names_of(asked: argparse.Namespace) -> SourceNames:
    """What `add_names` was given.  Raises `HloError`, one line, for what cannot be read as a map or a path."""
    owns = [] if asked.owns is None else [part.strip() for part in asked.owns.split(",")]
    if asked.scopes is None:
        return SourceNames.of(owns=owns)
    try:
        scopes = read_json(asked.scopes)
    except OSError as error:
        raise HloError(f"cannot read {asked.scopes}: {error.strerror or error}") from None
    except MeshError as error:
        raise HloError(f"{asked.scopes} is {error}") from None
    try:
        if scopes is None:
            raise HloError("a scope map is {pattern of an op_name: scope}, and not null")
        return SourceNames.of(scopes, owns)
    except HloError as error:
        raise HloError(f"{asked.scopes}: {error}") from None
