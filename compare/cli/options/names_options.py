"""The options for reading names of a user's program: `--scopes MAP.json --owns PART[,PART]`."""

import argparse
from typing import TYPE_CHECKING

from meshes.process.command_line import path

if TYPE_CHECKING:
    from compare.hlo.text.metadata import SourceNames


def add_names(parser: argparse.ArgumentParser) -> None:
    """Add the options of names, which override those of a saved program."""
    add = parser.add_argument
    add(
        "--scopes",
        metavar="MAP.json",
        type=path,
        help='a JSON object of regular expressions, searched in op_name, and their scopes: {"o_proj":'
        ' "layer.attention.out"}',
    )
    owns = "path fragments: installed files matching one count as user code, like transformers/models/"
    add("--owns", metavar="PART[,PART]", help=owns)


def names_of(options: argparse.Namespace) -> "SourceNames":
    """The names from the options of `add_names`.  Raises `HloError`, one line, for an invalid map or path."""
    from compare.hlo.text.errors import HloError
    from compare.hlo.text.metadata import SourceNames
    from meshes.process.documents import read_json
    from meshes.process.errors import MeshError

    owns = [] if options.owns is None else [part.strip() for part in options.owns.split(",")]
    if options.scopes is None:
        return SourceNames.of(owns=owns)
    try:
        scopes = read_json(options.scopes)
        if scopes is None:
            raise HloError("a scope map is {pattern of an op_name: scope}, and not null")
        return SourceNames.of(scopes, owns)
    except OSError as error:
        raise HloError(f"cannot read {options.scopes}: {error.strerror or error}") from None
    except MeshError as error:
        raise HloError(f"{options.scopes} is {error}") from None
    except HloError as error:
        raise HloError(f"{options.scopes}: {error}") from None
