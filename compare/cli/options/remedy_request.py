"""The options of `compare.remedy`, parsed."""

import argparse
from pathlib import Path

from compare.cli.options.case_options import case_parser, read_case, seconds
from compare.remedy.request import Request
from compare.run import scheduler
from compare.run.arms import ARMS, parse_arms
from compare.run.errors import WorkError
from compare.run.folder.load_run import read_run
from meshes.case import CHOICES
from meshes.memory import check_fits
from meshes.process.command_line import Parser, whole_number

MOST_COMPILES = 40
BY_HAND = "explicit"
STYLES = tuple(word for word in CHOICES["style"] if word != BY_HAND)
"""Styles with remedies: in `explicit` every collective is in the source."""


def remedy_parser() -> Parser:
    """The options of `compare.remedy`."""
    parser = case_parser(
        "compare.remedy",
        "Find the smallest set of code changes that removes avoidable communication. Every candidate is compiled and "
        "its collectives are counted.",
        example="--mesh tp4pp2 --arm torchxla",
    )
    add = parser.add_argument
    add("--framework", "--arm", dest="arm", metavar="LIST", default=",".join(ARMS), help="comma-separated frameworks")
    add(
        "--max-compiles", metavar="N", type=whole_number, default=MOST_COMPILES,
        help="maximum number of candidate programs, cached ones included; rerun with a larger N to continue",
    )  # fmt: skip
    add(
        "--timeout",
        metavar="S",
        type=seconds,
        default=scheduler.TIMEOUT_S,
        help="time limit of each process, in seconds",
    )
    add("--no-cache", action="store_true", help="recompile everything, and write nothing to the cache")
    add("--html", metavar="FILE", type=Path, help="also write an HTML page")
    add(
        "--into",
        metavar="RUN",
        type=Path,
        help="also write the result into this run folder; compare.report RUN then shows it",
    )
    add("--json", action="store_true", help="print the result as JSON")
    return parser


def read_request(options: argparse.Namespace) -> Request:
    """The request of the options.  Raises `ValueError` on an impossible one."""
    arms, case = tuple(parse_arms(options.arm)), read_case(options)
    if case.style == BY_HAND:
        raise WorkError(
            f"--style explicit has no remedies: its collectives are all written by hand; use one of {', '.join(STYLES)}"
        )
    check_fits(case)
    if options.into and (run_case := read_run(options.into).case).at(phases=case.phases, style=case.style) != case:
        raise WorkError(f"{options.into} is a run of {run_case.name}, but the search is for {case.name}")
    return Request(case=case, arms=arms, most=options.max_compiles, timeout_s=options.timeout)
