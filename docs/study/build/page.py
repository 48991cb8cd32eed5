"""The text of a study as one self-contained page: contents, numbered figures and tables, all reachable by keyboard."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from compare.render.picture import Picture
from docs.study.build.text import FIGURES

_FIGURE = re.compile(
    rf'<p><a id="(figure-\d+)"></a><a href="({FIGURES}/([\w-]+)\.svg)"><img src="[^"]*" alt="([^"]*)"\s*/?></a></p>\s*'
    r"<p>(<strong>Figure .*?)</p>",
    re.DOTALL,
)
_TABLE = re.compile(r"<table>(.*?)</table>", re.DOTALL)
_CAPTION = re.compile(r'<p><a id="(table-\d+)"></a>(<strong>Table .*?)</p>\s*(<div class="scroll".*?</div>)', re.DOTALL)
_LONG_CELL = re.compile(r"<td>(?=[^<]{20})")
"""Of words, which may be broken."""
_NUMBER = re.compile(r"Table \d+(?=\.)")
_TAG = re.compile(r'(<(?:a id="(?:figure|table)-\d+"|/a|/?details|/?summary|/?b|/?code)>)')
"""The HTML that `docs.study.build.text` writes into Markdown; all other is shown as it was typed."""
_MARKDOWN_LINK = re.compile(r'(<a href="(?!https?:)[^"#]*\.md(?:#[^"]*)?">.*?)(</a>)', re.DOTALL)


def make_page(markdown: str, *, title: str, pictures: Mapping[str, Picture]) -> str:
    """One HTML file: pictures are inside, each a link to its file in full size, and nothing is fetched."""
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = reader.parse(markdown)
    _escape_html(tokens)
    headings = _name_headings(tokens)
    body = reader.renderer.render(tokens, reader.options, {})
    body = _FIGURE.sub(lambda found: _figure(found, pictures), body)
    body = _CAPTION.sub(_table, _TABLE.sub(_region, body))
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = _MARKDOWN_LINK.sub(r"\1 (Markdown)\2", body)
    style = files("docs.study.build").joinpath("page.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>\n{style}</style></head>\n'
        f"<body>\n{_contents(headings)}\n<main>\n{body}</main>\n</body></html>\n"
    )


def _escape_html(tokens: Sequence[Token]) -> None:
    """A text or a datum may come from others, and a page runs nothing of theirs."""
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            token.content = "".join(
                part if _TAG.fullmatch(part) else part.replace("<", "&lt;") for part in _TAG.split(token.content)
            )
        _escape_html(token.children or ())


@cache
def slug(words: str) -> str:
    """The anchor of a heading, as GitHub has it."""
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def _name_headings(tokens: list[Token]) -> list[tuple[int, str, str]]:
    """Give each heading its anchor; returns (level, anchor, words) of each."""
    found: list[tuple[int, str, str]] = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
            anchor, often = slug(words), sum(slug(words) == slug(other) for _, _, other in found)
            anchor = f"{anchor}-{often}" if often else anchor
            token.attrSet("id", anchor)
            found.append((int(token.tag[1:]), anchor, words))
    return found


def _contents(headings: list[tuple[int, str, str]]) -> str:
    lines = [
        f'<li class="level-{level}"><a href="#{anchor}">{escape(words)}</a></li>'
        for level, anchor, words in headings
        if level in (2, 3)
    ]
    return (
        f'<nav aria-label="Contents"><details open><summary>Contents</summary><ol>{"".join(lines)}</ol></details></nav>'
    )


def _figure(found: re.Match[str], pictures: Mapping[str, Picture]) -> str:
    anchor, path, name, alt, caption = found.groups()
    if name not in pictures:  # typed by hand
        return found[0]
    source = b64encode(pictures[name].svg).decode("ascii")
    return (
        f'<figure id="{anchor}"><a href="{path}" aria-label="{anchor.replace("-", " ").capitalize()} in full size">'
        f'<img src="data:image/svg+xml;base64,{source}" alt="{alt}"></a>'
        f'<figcaption>{caption} <a href="{path}">Full size</a></figcaption></figure>'
    )


def _region(found: re.Match[str]) -> str:
    """A table in a region that scrolls, with the keyboard too."""
    label = _NUMBER.findall(found.string, 0, found.start())[-1:] or ["Table"]
    inside = _scopes(_LONG_CELL.sub('<td class="long">', found[1]))
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{label[0]}"><table>{inside}</table></div>'


def _table(found: re.Match[str]) -> str:
    anchor, caption, region = found.groups()
    return f'<figure id="{anchor}" class="table"><figcaption>{caption}</figcaption>{region}</figure>'


def _scopes(inside: str) -> str:
    """Headings of columns, and the first cell of each row as that of the row."""
    inside = inside.replace("<th", '<th scope="col"').replace('<th scope="col"ead', "<thead")
    return re.sub(r"(<tr>\s*)<td([^>]*)>(.*?)</td>", r'\1<th scope="row"\2>\3</th>', inside, flags=re.DOTALL)
