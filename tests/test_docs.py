"""What the docs say of the code is what the code says."""

import gzip
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compare.verdict.causes import INDUCED, INFLATED
from meshes.dims import DIMS
from meshes.scopes import SCOPES
from tests.places import ROOT


def between(text, mark):
    return re.search(rf"<!-- {mark}\b.*?-->\n(.*?)<!-- /{mark} -->", text, re.DOTALL)[1]


def causes_table():
    rows = [
        f"| `{row.name}`{mesh} | {verdict} | {words.sentence} | {words.remedy} |"
        for verdict, table in (("inflated", INFLATED), ("induced", INDUCED))
        for row in table
        for mesh, words in [("", row), *((f", no {axis}", own) for axis, own in row.without.items())]
    ]
    return "\n".join(["| cause | verdict | what it means | what usually removes it |", "|---|---|---|---|", *rows, ""])


def test_the_causes_in_the_docs_are_those_of_the_code():
    text = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
    assert between(text, "causes") == causes_table()


def test_the_words_in_the_docs_are_those_of_the_code():
    text = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
    for cause in (*INFLATED, *INDUCED):
        assert f"`{cause.name}`" in text
    assert len(SCOPES) == 15
    assert set(DIMS) > {"batch", "vocab"}


@pytest.mark.parametrize(
    "door",
    [
        "run",
        "plan",
        "hlo",
        "report",
        "trace",
        "sweep",
        "diff",
        "history",
        "remedy",
        "teach",
        "query",
        "export",
        "metric",
        "simulate",
        "calibrate",
    ],
)
def test_every_door_has_help_with_an_example(door):
    done = subprocess.run(
        [sys.executable, "-m", f"compare.{door}", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert f"python -m compare.{door}" in done.stdout
    assert "example:" in done.stdout
    assert f"python -m compare.{door}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_file_names_a_path_of_a_machine_or_a_registry():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True).stdout.split(
        "\n"
    )
    words = re.compile(rb"/root/|/home/\w|/opt/\w|/tmp/\w|/usr/\w+/python|pypi\.org|pythonhosted|download\.pytorch")
    this_file = Path(__file__).relative_to(ROOT)
    for name in filter(None, listed):
        path = ROOT / name
        if path.is_file() and Path(name) != this_file:
            data = path.read_bytes()
            packed = {".gz": gzip.decompress, ".xz": lzma.decompress}
            data = packed.get(path.suffix, bytes)(data)
            assert not words.search(data), (name, words.search(data))


def test_no_page_has_the_marks_of_a_merge():
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        marks = [line for line in page.read_text(encoding="utf-8").splitlines() if re.match(r"(<|>){7} ", line)]
        assert not marks, page


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """The folder in which the example run is drawn again, and what is printed."""
    out = tmp_path_factory.mktemp("example") / "run"
    done = subprocess.run(
        [sys.executable, "-m", "compare.report", "docs/example-run", "--out", str(out)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
    )
    return out, done.stdout


@pytest.mark.slow
def test_the_example_in_the_readme_is_what_the_command_prints(redrawn):
    printed = redrawn[1].rpartition("\n\n")[0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert between(readme, "example") == f"```\n{printed}\n```\n"


@pytest.mark.slow
def test_the_example_run_is_drawn_as_this_version_draws_it(redrawn):
    out, _ = redrawn
    for name in ("report.json", "case.json"):
        assert (out / name).read_bytes() == (ROOT / "docs/example-run" / name).read_bytes(), f"redraw {name}"
    page, shipped = ((folder / "report.html").read_text() for folder in (out, ROOT / "docs/example-run"))
    assert without_figures(page) == without_figures(shipped), "redraw report.html"


def without_figures(page):
    """The page without its pictures, whose bytes depend on fonts and versions."""
    return re.sub(r'src="data:image/[^"]*"', "", page)


def test_the_index_of_the_docs_lists_every_page():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").iterdir() if path.suffix == ".md" and path.name != "README.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_the_readme_is_read_in_one_sitting():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200
