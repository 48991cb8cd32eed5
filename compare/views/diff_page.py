"""The page of a diff: one file that needs nothing else, and has no script."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compare.views import diff_lines, units

_TEMPLATES = Path(__file__).parent / "templates"


def page(found: Mapping[str, Any]) -> str:
    """Of two programs, or of two runs."""
    return (
        _environment()
        .get_template("diff.html.j2")
        .render(
            found=found,
            programs=[one for one in found["programs"] if not one["same"]] if "programs" in found else [found],
            style=Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8")),  # our own file, no program's text
            words=diff_lines,
        )
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"bytes": units.bytes_text, "exact": units.exact_text, "kept": units.kept, "axes": units.axes_text}
    return made
