"""The report in a terminal: a screenful, or with details everything but drawings."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from compare.render.energy.section import energy_section
from compare.render.energy.sentence import energy_sentence
from compare.render.report.attribution import controls_section
from compare.render.report.phase import phase_section
from compare.render.terminal import console, print_sections, text_width, wrap_prose
from compare.render.time.section import time_section
from compare.render.time.sentence import time_sentence
from compare.render.time.speed.section import speed_section
from compare.report.model.report import Report
from meshes.process.command_line import print_json
from meshes.process.log import log

PAGE = "report.html"

NUMBERS = "report.json"

_DETAILS = "More here with --details (times, passes, attribution, controls)"


def show_report(report: Report, folder: Path, *, details: bool, note: Sequence[str] = (), last: str = PAGE) -> None:
    """Print the report, and notes on the run; the last line is the path of the page, or of the numbers, unbroken."""
    out = console()
    print_report(report, details=details, out=out)
    out.print()
    for line in note:
        out.print(wrap_prose(line, width=text_width(out), style="yellow"))
    if not details:
        more = f"{_DETAILS}, and on the page:" if last == PAGE else f"{_DETAILS}; the numbers:"
        out.print(wrap_prose(more, width=text_width(out), style="dim"))
    print(folder / last)


def print_outcome(
    report: Report, folder: Path, *, note: Sequence[str], details: bool, as_json: bool, last: str = PAGE
) -> None:
    """What a command says of a run that was made; as JSON, notes and the path at the end go to stderr.

    last: the file that it ends with, `PAGE` or `NUMBERS`.
    """
    if as_json:
        print_json(report.to_json())
        for line in (*note, folder / last):
            log().info("%s", line)
    else:
        show_report(report, folder, details=details, note=note, last=last)


def print_report(report: Report, *, details: bool, out: Console) -> None:
    """Print the sentences, then each phase: bytes by program, and the largest differences."""
    for words in filter(None, (report.sentence, time_sentence(report), energy_sentence(report))):
        out.print(wrap_prose(words, width=text_width(out), style="bold"))
    phases = [phase_section(report, phase) for phase in report.phases]
    after = [controls_section(report), time_section(report), energy_section(report)]
    print_sections([speed_section(report), *phases, *after], out=out, details=details)
