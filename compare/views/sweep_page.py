"""`sweep.html`: the figure, the table with a link to each case's own page, and what is not there.  No script."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compare.views.figures import Picture
from compare.views.sweep_lines import common_words, crosses_slices, footnotes, lines, reasons
from compare.views.sweep_text import NOTE
from compare.views.time_page import inlined
from compare.views.units import kept

_TEMPLATES = Path(__file__).parent / "templates"


def page(sweep: Mapping[str, Any], *, picture: Picture) -> str:
    """The whole page as HTML; links lead into the run folders beside it."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters["kept"] = kept
    return made.get_template("sweep.html.j2").render(
        sweep=sweep,
        style=Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8")),  # our own file, no program's text
        picture=inlined(picture),
        lines=lines(sweep),
        far=list(sweep["arms"]) if crosses_slices(lines(sweep)) else [],
        failed=reasons(sweep),
        refused=reasons(sweep, status="refused"),
        note=" ".join([NOTE, *footnotes(lines(sweep))]),
        common=common_words(sweep),
    )
