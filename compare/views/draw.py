"""Everything that is drawn of a report, into its run folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compare.views import figures, tables
from compare.views.page import page

PAGE = "report.html"


def draw(report: Mapping[str, Any], folder: Path) -> Path:
    """Write report.html, figures/ and tables/; the same report gives the same files.  Returns the page's path."""
    found = figures.pictures(report)
    figures.save(found, folder / "figures")
    tables.save(report, folder / "tables")
    place = folder / PAGE
    place.write_text(page(report, pictures=found), encoding="utf-8")
    return place
