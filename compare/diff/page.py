"""The page of a diff: one file that needs nothing else, and has no script."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment

from compare.diff import lines
from compare.render import units
from compare.render.html import environment, read_static


def page(found: Mapping[str, Any]) -> str:
    """Of two programs, or of two runs."""
    return (
        _environment()
        .get_template("diff.html.j2")
        .render(
            found=found,
            programs=[one for one in found["programs"] if not one["same"]] if "programs" in found else [found],
            style=read_static("page.css"),
            words=lines,
        )
    )


def _environment() -> Environment:
    made = environment()
    made.filters |= {
        "bytes": units.bytes_text,
        "exact": units.exact_text,
        "kept": units.keep_units_together,
        "axes": units.axes_text,
    }
    return made
