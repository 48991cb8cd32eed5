"""A table as text 100 columns wide for a terminal, and as HTML for a notebook."""

from collections.abc import Callable
from io import StringIO

from markupsafe import Markup
from rich.console import Console

from compare.render.html import environment
from compare.render.terminal import WIDTH, console


def print_to_text(printing: Callable[[Console], None]) -> str:
    """The text that `printing` prints."""
    file = StringIO()
    out = console(file)
    out.width = WIDTH
    printing(out)
    return file.getvalue().rstrip("\n")


def render_html(template: str, **values: object) -> str:
    """A template of `compare/render/templates`, filled."""
    templates = environment()
    templates.filters["breakable"] = lambda path: Markup("/<wbr>").join(path.split("/"))
    return templates.get_template(template).render(**values)
