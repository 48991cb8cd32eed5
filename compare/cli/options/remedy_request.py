"""The arms and the case of a search for remedies."""

import argparse
from pathlib import Path

from compare.cli.options.case_request import read_case
from compare.run.arms import Arm, parse_arms
from compare.run.errors import WorkError
from meshes.case import Case
from meshes.choices import CHOICES
from meshes.memory import check_fits

BY_HAND = "explicit"
STYLES = tuple(word for word in CHOICES["style"] if word != BY_HAND)
"""Styles with remedies: in `explicit` every collective is in the source."""


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
