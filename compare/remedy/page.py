"""The page of a search for remedies: one file that needs nothing else, and has no script."""

from collections.abc import Mapping
from typing import Any

from compare.remedy import text
from compare.render import units
from compare.render.html import environment, read_static


def page(found: Mapping[str, Any]) -> str:
    """The ordered list of each arm with its code, what was compiled on the way, and what remains."""
    made = environment()
    made.filters |= {"bytes": units.bytes_text, "exact": units.exact_text, "kept": units.kept, "time": units.time_text}
    style = read_static("page.css")
    return made.get_template("remedy.html.j2").render(found=found, style=style, words=text)
