"""The study that ships: its text, page and pictures are what its data answer."""

import re
import shutil
from functools import cache

import duckdb
import pytest

from compare.study.errors import StudyError
from compare.study.make import make_text
from compare.study.page import make_page
from compare.study.spec import read_study
from tests.places import ROOT

FOLDER = ROOT / "docs/study"
TEMPLATE = (FOLDER / "study.md.j2").read_text()
MOST_BYTES = 15_000_000
_CODE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|`[^`]*`|\]\([^)]*\)|^#+ [\d.]+", re.DOTALL | re.MULTILINE)
NAMES = re.compile(r"\b(?:v6e|bf16|float32|arXiv 2507\.14392)\b")
"""The only digits of the prose that are no numbers."""


@cache
def answered():
    """The study made anew from the shipped data, from the repository's root as the text names its files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
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
    assert page.count('src="data:image/svg+xml;base64,') == len(made.pictures) == text.count("](figures/")
    assert {f"{name}.svg" for name in made.pictures} <= {path.name for path in (FOLDER / "figures").iterdir()}
    assert not re.search(r'(?:src|href)="(?!data:|#|\.\./|data\b|https://)', page)


def test_no_number_of_the_text_is_typed():
    prose = NAMES.sub("", _CODE.sub("", TEMPLATE))
    assert re.findall(r"\S*\d\S*", prose) == []


def test_every_query_of_the_study_is_used_and_shown():
    used = set(re.findall(r'rows\("([\w-]+)"\)', TEMPLATE))
    shown = set(re.findall(r'query\("([\w-]+)"\)', TEMPLATE))
    assert {path.stem for path in (FOLDER / "queries").glob("*.sql")} <= used
    assert used - shown <= {"cases"}


def test_the_error_that_may_turn_a_ranking_is_that_of_the_model():
    """Median of the relative errors of v6e's all-reduces, as benchmarks.model measured it."""
    model = (ROOT / "docs/model.md").read_text()
    (measured,) = re.findall(r"^\| v6e all-reduce, device \| \d+ \| (\d+)% \|", model, re.M)
    said = re.findall(r"(?:<|>=) 1\.(\d+)", (FOLDER / "queries/plans.sql").read_text())
    assert said == [measured] * 3


def test_the_first_screen_of_the_readme_says_what_the_study_found():
    (said,) = re.findall(r"^\*\*PyTorch's attention call.*?\n\n", (ROOT / "README.md").read_text(), re.M | re.S)
    (finding,) = re.findall(r"^\*\*The strongest finding.*?\n\n", answered()[1], re.M | re.S)
    numbers = re.findall(r"[\d.]+ (?:ms|×)", said)
    assert numbers == ["143 ×", "1.00 ×"]
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
