"""What-if questions, as a command line asks them."""

from collections.abc import Sequence

from compare.cli.options.what_if_options import what_if_parser
from compare.cli.options.what_if_request import read_what_if
from compare.simulate.what_if.request import WhatIf


def parse_what_if(words: Sequence[str]) -> WhatIf:
    parser = what_if_parser()
    return read_what_if(parser.parse_args(words), parser)
