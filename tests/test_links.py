"""Every link of the documents and of the pages that ship leads to something that is there."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.places import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md")),
    *sorted(path for kind in ("md", "html") for path in (ROOT / "docs").rglob(f"*.{kind}")),
]
_FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^\s)>]*(?:\([^\s)]*\)[^\s)>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_BARE = re.compile(r"<((?:https?|mailto):[^>\s]*)>")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$", re.MULTILINE)
_DATA = re.compile(r"""(["'])data:[^"']*\1""")


class _Tags(HTMLParser):
    """The links and the anchors of a page of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name in ("href", "src", "xlink:href"):
                self.links.append(value or "")


@cache
def _tags(page: Path) -> _Tags:
    tags = _Tags()
    tags.feed(_DATA.sub('""', page.read_text(encoding="utf-8")))
    return tags


@cache
def links(page: Path) -> tuple[str, ...]:
    """Where a page links to, as it is written."""
    if page.suffix == ".html":
        return tuple(link for link in _tags(page).links if link)
    text = _CODE.sub("``", _FENCE.sub("", page.read_text(encoding="utf-8")))
    return tuple(each for pattern in (_LINK, _REFERENCE, _BARE) for each in pattern.findall(text))


@cache
def anchors(page: Path) -> frozenset[str]:
    """What can stand behind the `#` of a link to this page: ids in HTML, headings as GitHub spells them in Markdown."""
    if page.suffix == ".html":
        return frozenset(_tags(page).anchors)
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found: Counter[str] = Counter()
    named: set[str] = set(re.findall(r"<\w+ (?:id|name)=\"([^\"]+)\"", text))
    for heading in _HEADING.findall(text):
        slug = github_slug(heading)
        named.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return frozenset(named)


def github_slug(heading: str) -> str:
    """GitHub's anchor of a heading: its shown words in lower case, without punctuation, a hyphen for each space."""
    shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def dead_links(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere, with what is missing."""
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            if not is_well_formed(link):
                yield f"{link}: no address"
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif parts.fragment and target.suffix not in (".md", ".html"):
            yield f"{link}: only pages have anchors"
        elif parts.fragment and unquote(parts.fragment) not in anchors(target):
            yield f"{link}: no such heading"


def is_well_formed(address: str) -> bool:
    """Whether an address outside of the repository could be one; it is not fetched."""
    parts = urlsplit(address)
    if parts.scheme == "mailto":
        return "@" in parts.path
    host = re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", parts.hostname or "")
    return parts.scheme in ("http", "https") and bool(host) and not re.search(r"[\s<>{}|\\^`]|\.\.\.|…", address)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# One thing\n\n## A `b_c`: *d* (e), 2 × f\n\n## A `b_c`: *d* (e), 2 × f\n")
    (tmp_path / "page.html").write_text(
        '<h1 id="top">x</h1><a href="#top">a</a><img src="gone.png"><a href="#no">b</a>'
    )
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md#one-thing) [b](there.md#a-b_c-d-e-2--f) [c](there.md#a-b_c-d-e-2--f-1) [d](page.html#top)\n"
        "[e](https://a.example.org/x_(y)) `[f](nowhere.md)` <https://example.org>\n```\n[g](nowhere.md)\n```\n"
        "[h](there.md#two) ![i](none.svg) [j](#here) [k](https://example.org/a...b) [l](page.html#bottom) [m][1]\n\n"
        "[1]: missing.md\n"
    )
    assert sorted(dead_links(page)) == [
        "#here: no such heading",
        "https://example.org/a...b: no address",
        "missing.md: no such file",
        "none.svg: no such file",
        "page.html#bottom: no such heading",
        "there.md#two: no such heading",
    ]
    assert sorted(dead_links(tmp_path / "page.html")) == ["#no: no such heading", "gone.png: no such file"]
