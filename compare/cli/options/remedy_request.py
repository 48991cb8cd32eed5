"""The options of `compare.remedy`, parsed."""

import argparse
from pathlib import Path

from compare.cli.options.case_options import case_parser, read_case
from compare.cli.options.work_options import add_frameworks, add_limits
from compare.run.arms import Arm, parse_arms
from compare.run.errors import WorkError
from meshes.case import CHOICES, Case
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
        example="--mesh tp4pp2 --framework torchxla",
    )
    add = parser.add_argument
    add_frameworks(parser)
    most = "maximum number of candidate programs, cached ones included; rerun with a larger N to continue"
    add("--max-compiles", metavar="N", type=whole_number, default=MOST_COMPILES, help=most)
    add_limits(parser)
    add("--html", metavar="FILE", type=Path, help="also write an HTML page")
    into = "also write the result into this run folder; compare.report RUN then shows it"
    add("--into", metavar="RUN", type=Path, help=into)
    add("--json", action="store_true", help="print the result as JSON")
    return parser


def read_request(options: argparse.Namespace) -> tuple[list[Arm], Case]:
    """Raises `ValueError` on an impossible request."""
    arms, case = parse_arms(options.arm), read_case(options)
    if case.style == BY_HAND:
        raise WorkError(
            f"--style explicit has no remedies: its collectives are all written by hand; use one of {', '.join(STYLES)}"
        )
    check_fits(case)
    if options.into:
        _check_run(options.into, case)
    return arms, case


def _check_run(folder: Path, case: Case) -> None:
    """`WorkError` where a result of this case is not of that run."""
    from compare.run.folder.load_run import read_run

    run_case = read_run(folder).case
    if run_case.at(phases=case.phases, style=case.style) != case:
        raise WorkError(f"{folder} is a run of {run_case.name}, but the search is for {case.name}")
