"""The study that ships: its text, page and pictures are what its data answer."""

import re
import shutil
from functools import cache
from html.parser import HTMLParser

import duckdb
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from docs.study.build.errors import StudyError
from docs.study.build.make import make_text
from docs.study.build.page import make_page, slug
from docs.study.build.spec import read_study
from tests.places import ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "docs/study"
TEMPLATE = (FOLDER / "study.md.j2").read_text()
MOST_BYTES = 15_000_000
_CODE = re.compile(r"```.*?```|\{%.*?%\}|\{\{.*?\}\}|`[^`]*`|\]\([^)]*\)|^## References.*", re.DOTALL | re.MULTILINE)
NAMES = re.compile(r"\b(?:v6e|bf16|float32|TPU v4)\b")
"""The only digits of the prose that are no numbers."""


@cache
def answered():
    """The study made anew from the shipped data, from the repository's root as the text names its files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        # The text and the page have SVGs; a third of drawing is the PNG beside each.
        patch.setattr(FigureCanvasAgg, "print_png", lambda *_, **__: None)
        study = read_study((FOLDER / "study.toml").relative_to(ROOT))
        return study, *make_text(study)


def test_the_text_is_what_the_shipped_data_answer():
    _, text, _ = answered()
    assert text == (FOLDER / "study.md").read_text()


def test_the_page_has_the_same_text_and_every_picture():
    study, text, made = answered()

    def without_pictures(page):
        return re.sub(r'src="data:image/svg\+xml;base64,[^"]*"', "", page)

    page = (FOLDER / "study.html").read_text()
    assert without_pictures(page) == without_pictures(make_page(text, title=study.title, pictures=made.pictures))
    assert page.count('src="data:image/svg+xml;base64,') == len(made.pictures) == text.count(".svg)](figures/")
    assert {f"{name}.svg" for name in made.pictures} <= {path.name for path in (FOLDER / "figures").iterdir()}
    assert not re.search(r'src="(?!data:)', page)


class Links(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, page):
        super().__init__()
        self.links, self.anchors = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found["href"]] if "href" in found else []
        self.anchors += [found["id"]] if "id" in found else []


@cache
def anchors_of(path):
    if path.suffix == ".html":
        return Links(path.read_text()).anchors
    return [slug(words) for words in re.findall(r"^#+ (.*)", path.read_text(), re.M)]


def test_every_link_of_the_page_and_of_the_text_leads_somewhere():
    page = Links((FOLDER / "study.html").read_text())
    assert len(page.anchors) == len(set(page.anchors))
    text = (FOLDER / "study.md").read_text()
    headings = {slug(words) for words in re.findall(r"^#+ (.*)", text, re.M)} | set(re.findall(r'<a id="(.*?)"', text))
    in_text = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(page.links) > 80
    for link in {*page.links, *in_text}:
        file, _, anchor = link.partition("#")
        if link.startswith("https://"):
            continue
        path = (FOLDER / file).resolve() if file else FOLDER / "study.html"
        assert path.exists(), link
        assert not anchor or anchor in anchors_of(path), link
        assert file or anchor in headings or link not in in_text, link


def test_the_page_can_be_read_without_eyes_and_without_a_mouse():
    page = (FOLDER / "study.html").read_text()
    assert page.count("<main>") == page.count("<nav ") == page.count("<h1 ") == 1
    assert len(re.findall(r"<h[1-6](?! id=)", page)) == 0
    tables = page.count("<table>")
    assert tables == page.count('<div class="scroll" role="region" tabindex="0" aria-label="Table ') > 10
    assert len(re.findall(r"<th(?!ead)(?! scope=)", page)) == 0
    numbers = re.findall(r'aria-label="Table (\d+)"', page)
    assert numbers == [str(number + 1) for number in range(tables)]
    assert not re.search(r'<img (?![^>]*alt="\w)', page)
    for name in answered()[2].pictures:
        assert f'<a href="figures/{name}.svg">Full size</a>' in page


def test_figures_are_all_in_the_text_and_no_others_ship():
    text = answered()[1]
    shown = re.findall(r"\]\(figures/([\w-]+)\.svg\)\]", text)
    assert {path.stem for path in (FOLDER / "figures").iterdir()} == set(shown)
    assert re.findall(r"^\*\*Figure (\d+)\.", text, re.M) == [str(number + 1) for number in range(len(shown))]


def test_no_number_of_the_text_is_typed():
    prose = NAMES.sub("", _CODE.sub("", TEMPLATE))
    assert re.findall(r"\S*\d\S*", prose) == []


def test_every_query_of_the_study_is_used_and_shown():
    used = set(re.findall(r'rows\("([\w-]+)"\)', TEMPLATE))
    shown = set(re.findall(r'query\("([\w-]+)"\)', TEMPLATE))
    assert {path.stem for path in (FOLDER / "queries").glob("*.sql")} <= used
    assert used - shown <= {"cases"}


def test_the_first_screen_of_the_readme_says_what_the_study_found():
    (said,) = re.findall(r"^\*\*PyTorch's attention call.*?\n\n", (ROOT / "README.md").read_text(), re.M | re.S)
    (finding,) = re.findall(r"^\*\*Bytes\.\*\*.*?(?=^\*\*Plans)", answered()[1], re.M | re.S)
    numbers = re.findall(r"[\d.]+ (?:ms|×)", said)
    assert numbers == ["143 ×", "1.00 ×", "1.40 ×", "3.71 ×"]
    assert [number for number in numbers if number not in finding] == []


def test_the_data_are_small_and_plain_parquet():
    files = sorted((FOLDER / "data").glob("*.parquet"))
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    for path in files:
        ((count,),) = duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()
        assert count > 0, path.name


def test_a_table_that_is_not_there_is_named(tmp_path):
    """Its queries would find no rows, and the text would say so of the data."""
    shutil.copytree(FOLDER, tmp_path / "study")
    for name in ("times", "cases"):
        (tmp_path / "study/data" / f"{name}.parquet").unlink()
    with pytest.raises(StudyError, match=r"lacks times\.parquet, cases\.parquet; `--from data` writes"):
        make_text(read_study(tmp_path / "study/study.toml"))
