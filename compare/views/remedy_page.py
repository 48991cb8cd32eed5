"""The page of a search for remedies: one file that needs nothing else, and has no script."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compare.views import remedy, units

_TEMPLATES = Path(__file__).parent / "templates"


def page(found: Mapping[str, Any]) -> str:
    """The ordered list of each arm with its code, what was compiled on the way, and what remains."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"bytes": units.bytes_text, "exact": units.exact_text, "kept": units.kept, "time": units.time_text}
    style = Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8"))  # our own file, no program's text
    return made.get_template("remedy.html.j2").render(found=found, style=style, words=remedy)
