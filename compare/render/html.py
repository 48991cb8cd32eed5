"""Blocks as HTML, and pages from the templates of this room: whatever a program wrote is escaped."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from compare.render import units
from compare.render.blocks import Block, Blocks, Widget

_TEMPLATES = Path(__file__).parent / "templates"

_BACKTICKS = re.compile(r"`([^`]+)`")


def environment(**filters: Callable[..., object]) -> Environment:
    """A Jinja environment of all templates: everything is escaped, an unknown name is an error."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "bytes": _keep_together(units.bytes_text), "exact": units.exact_text, "axes": units.axes_text,
        "times": _keep_together(units.times_text), "time": _keep_together(units.time_text),
        "ratio": _keep_together(units.ratio_text),
        "kept": units.keep_units_together, "counted": units.count_text, "coded": _mark_code,
        "capitalize_first": units.capitalize_first,
        **filters,
    }  # fmt: skip
    return made


@cache
def shared_environment() -> Environment:
    """The environment of the report's page, whose templates are compiled once."""
    made = environment()
    made.globals |= {"to_html": to_html}
    return made


def read_static(*names: str) -> Markup:
    """Style sheets or scripts of this room, joined: our own files, no program's text."""
    return Markup("\n".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def to_html(blocks: Blocks) -> Markup:
    """Blocks one below the other, each by the macro that has its name, a widget by its own template."""
    return Markup("\n").join(map(_block, blocks))


def _block(block: Block) -> Markup:
    if isinstance(block, Widget):
        return Markup(shared_environment().get_template(block.template).render(block.values))
    macros = shared_environment().get_template("blocks.html.j2").module
    html: Markup = getattr(macros, type(block).__name__.lower())(block)
    return html


def _keep_together(text: Callable[..., str]) -> Callable[..., str]:
    """The same words, with no line ending inside them."""
    return lambda *values: text(*values).replace(" ", units.KEPT)


def _mark_code(words: str) -> Markup:
    """Escaped, with what stands in backticks as code, and numbers together with their units."""
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(units.keep_units_together(words)))))
