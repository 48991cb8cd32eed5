"""Blocks as HTML, and pages from the templates of this room; all text is escaped."""

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
    """A Jinja environment of all templates: autoescape on, unknown names are errors."""
    jinja = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters |= {
        "bytes": _keep_together(units.bytes_text),
        "exact": units.exact_text,
        "axes": units.axes_text,
        "times": _keep_together(units.times_text),
        "time": _keep_together(units.time_text),
        "ratio": _keep_together(units.ratio_text),
        "kept": units.keep_units_together,
        "counted": units.count_text,
        "coded": _mark_code,
        "capitalize_first": units.capitalize_first,
        **filters,
    }
    return jinja


@cache
def shared_environment() -> Environment:
    """The environment of the report's page, shared so that templates are compiled once."""
    jinja = environment()
    jinja.globals |= {"to_html": to_html}
    return jinja


def read_static(*names: str) -> Markup:
    """Style sheets or scripts of this room, joined, as safe markup: our own files, without any program's text."""
    return Markup("\n".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def to_html(blocks: Blocks) -> Markup:
    """Render blocks, each by the macro of its class's name, a widget by its own template."""
    return Markup("\n").join(map(_block, blocks))


def _block(block: Block) -> Markup:
    if isinstance(block, Widget):
        return Markup(shared_environment().get_template(block.template).render(block.values))
    macros = shared_environment().get_template("blocks.html.j2").module
    html: Markup = getattr(macros, type(block).__name__.lower())(block)
    return html


def _keep_together(text: Callable[..., str]) -> Callable[..., str]:
    """The same text, with no-break spaces."""
    return lambda *values: text(*values).replace(" ", units.KEPT)


def _mark_code(words: str) -> Markup:
    """Escaped text, with backticks as code, and no-break spaces between numbers and units."""
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(units.keep_units_together(words)))))
