"""The text of a study as one self-contained page."""

import re
from base64 import b64encode
from collections.abc import Mapping
from html import escape

from markdown_it import MarkdownIt

from compare.render.picture import Picture
from compare.study.text import FIGURES

_IMAGE = re.compile(rf'<p><img src="{FIGURES}/([\w-]+)\.svg" alt="([^"]*)"\s*/?></p>')

_STYLE = """
body { max-width: 62rem; margin: 2rem auto; padding: 0 1.2rem; font: 16px/1.55 system-ui, sans-serif; color: #20242b; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 2.6rem; border-top: 1px solid #d7dbe0; padding-top: 1.2rem; }
table { border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto; margin: 1rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #d7dbe0; text-align: left; white-space: nowrap; }
td[style*="right"], th[style*="right"] { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; } figcaption { font-size: 14px; color: #5d6673; }
pre { background: #f4f5f7; padding: .7rem; overflow-x: auto; font-size: 13px; } code { font-size: .92em; }
details { margin: .6rem 0; } summary { cursor: pointer; color: #1f5a91; }
@media print { 
  details { display: none; } body { max-width: none; } figure, table { break-inside: avoid; }
}
"""


def make_page(markdown: str, *, title: str, pictures: Mapping[str, Picture]) -> str:
    """One HTML file: pictures are inside, and nothing is fetched."""
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)

    def put(match: re.Match[str]) -> str:
        source = b64encode(pictures[match[1]].svg).decode("ascii")
        return (
            f'<figure><img src="data:image/svg+xml;base64,{source}" alt="{match[2]}">'
            f"<figcaption>{match[2]}</figcaption></figure>"
        )

    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body>\n{_IMAGE.sub(put, body)}</body></html>\n"
    )
