"""`sweep.html`: the figure, the table with a link to each case's own page, and what is not there.  No script."""

from collections.abc import Mapping
from typing import Any

from compare.render.html import environment, read_static
from compare.render.picture import Picture, inlined
from compare.sweep.render.lines import common_words, crosses_slices, footnotes, lines, reasons
from compare.sweep.render.text import NOTE


def page(sweep: Mapping[str, Any], *, picture: Picture) -> str:
    """The whole page as HTML; links lead into the run folders beside it."""
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            sweep=sweep,
            style=read_static("page.css"),
            picture=inlined(picture),
            lines=lines(sweep),
            far=list(sweep["arms"]) if crosses_slices(lines(sweep)) else [],
            failed=reasons(sweep),
            refused=reasons(sweep, status="refused"),
            note=" ".join([NOTE, *footnotes(lines(sweep))]),
            common=common_words(sweep),
        )
    )
