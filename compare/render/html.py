"""HTML pages from the templates of this room: how they are rendered, and what they share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_TEMPLATES = Path(__file__).parent / "templates"


def environment(**filters: Callable[..., Any]) -> Environment:
    """A Jinja environment of all templates: everything is escaped, an unknown name is an error."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= filters
    return made


def read_static(*names: str) -> Markup:
    """Style sheets or scripts of this room, joined: our own files, no program's text."""
    return Markup("\n".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names))
