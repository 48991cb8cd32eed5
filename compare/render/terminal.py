"""Lines for a terminal: 60 to 100 columns, readable without colour, nothing obeyed that a program wrote."""

import textwrap
from typing import IO

from rich.console import Console
from rich.text import Text

from compare.render.units import KEPT, kept
from meshes.process.one_line import plain

WIDTH = 100

STYLES = {"inherent": "cyan", "inflated": "yellow", "induced": "red"}

_NARROWEST = 60


def console(file: IO[str] | None = None) -> Console:
    """Where views print: standard output, or a file, 100 columns wide; rich itself heeds `NO_COLOR` and pipes."""
    made = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=False)
    made.width = max(_NARROWEST, min(WIDTH, made.size.width)) if made.is_terminal else WIDTH
    return made


def text_width(out: Console) -> int:
    """Columns for prose."""
    return max(_NARROWEST, min(WIDTH, out.width))


def wrapped(words: str, *, width: int = WIDTH, indent: str = "", hang: str = "", style: str = "") -> Text:
    """Prose over several lines; a number and its unit stay together."""
    lines = textwrap.wrap(
        kept(plain(words)), width=width, initial_indent=indent, subsequent_indent=hang or indent,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    return Text("\n".join(lines).replace(KEPT, " "), style=style, no_wrap=True, overflow="ignore")
