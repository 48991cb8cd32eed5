"""Everything that is drawn of a report, into its run folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compare.views import figures, tables
from compare.views.page import page
from compare.views.text import print_note, print_page, print_report

PAGE = "report.html"


def draw(report: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write report.json, report.html, figures/ and tables/, the same files from the same report; returns the report."""
    (folder / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    found = figures.pictures(report)
    figures.save(found, folder / "figures")
    tables.save(report, folder / "tables")
    (folder / PAGE).write_text(page(report, pictures=found), encoding="utf-8")
    return report


def show(report: Mapping[str, Any], folder: Path, *, note: Sequence[str] = ()) -> None:
    """Print the report, and what else is to be said; the last line is the path of the page."""
    print_report(report)
    print_note(note)
    print_page(folder / PAGE)
