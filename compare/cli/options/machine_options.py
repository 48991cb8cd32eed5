"""The options of a machine, and of the rules by which it is simulated: `--machine v6e:2x4 --as astra-sim`."""

import argparse

from meshes.process.command_line import Parser


def add_machine(parser: Parser | argparse._ArgumentGroup, more: str = "") -> None:
    """Add `--machine`; more: what is taken without it."""
    parser.add_argument("--machine", metavar="FILE|NAME", help=f"a TOML file, or a TPU slice like v6e:2x4{more}")


def add_rules(parser: Parser | argparse._ArgumentGroup) -> None:
    """Add `--as` and `--aware`, read by `is_as_astra_sim`."""
    add = parser.add_argument
    rules = "cost model: ASTRA-sim's cycles (default: wirediff's, in ns)"
    add("--as", dest="rules", choices=("astra-sim",), help=rules)
    add("--aware", action="store_true", help="use ASTRA-sim's congestion-aware backend (one dimension only)")


def is_as_astra_sim(options: argparse.Namespace, parser: Parser) -> bool:
    """Whether the rules are ASTRA-sim's; `--aware` is of those alone."""
    if options.aware and not options.rules:
        parser.error("--aware belongs to --as astra-sim")
    return bool(options.rules)
