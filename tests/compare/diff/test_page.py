"""The page of a diff in a real browser, and its words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compare.diff.diff_report import diff_report
from compare.diff.diff_runs import diff_runs
from compare.diff.lines import difference_lines, equivalent_words, verdict
from compare.diff.matching import match
from compare.diff.print_diff import page, print_diff
from compare.render.terminal import console
from tests.compare.render.browsers import MARKS, open_page
from tests.compare.verdict.toy_hlo import AXES, BACK, GATHER, HOP, SUM, rows, wire
from tests.places import EXAMPLE as RUN

HOSTILE = "<script>alert(1)</script>"
LONG = wire("all-gather", "bf16[64,1024]", result="bf16[256,1024]", scope="a_scope_that_goes_on/" * 8)


def render_diff(a: list[str], b: list[str]) -> dict[str, Any]:
    return diff_report(match(rows(*a), rows(*b)), names=("first.hlo", f"{HOSTILE}.hlo"), axes=AXES)


def print_text(diff: dict[str, Any], tmp_path: Path) -> list[str]:
    with (tmp_path / "out").open("w+") as file:
        print_diff(diff, out=console(file))
        file.seek(0)
        return file.read().splitlines()


def test_a_line_says_what_where_how_much_and_whose() -> None:
    (line,) = difference_lines(render_diff([SUM], [SUM, *[GATHER] * 3]))
    assert (line.sign, line.amount, line.what) == ("+", "+1.18 MB", "all-gather over tensor")
    assert (line.scope, line.op_name) == ("layer.mlp.down", "layer.mlp.down/dot_general")
    assert (line.how, line.source) == ("3 × 524 kB", "model.py:7")


def test_a_change_says_what_was_and_what_is() -> None:
    (line,) = difference_lines(render_diff([SUM], [wire("all-reduce", "f32[256,1024]")]))
    assert (line.sign, line.amount, line.how) == ("~", "+786 kB", "bf16 → f32, payload 524 kB → 1.05 MB")


def test_other_forms_are_told_once_for_all_alike() -> None:
    diff = render_diff([GATHER, GATHER], [HOP, HOP, BACK] * 2)
    (words,) = equivalent_words(diff)
    assert words.startswith("1 all-gather over tensor = 3 collective-permute over tensor, 2 × (")
    assert verdict(diff) == "No difference: 2 equivalent in another form."
    more = render_diff([GATHER], [HOP, HOP, BACK, BACK])
    assert equivalent_words(more)[0].endswith("; +131 kB a step")
    assert verdict(more) == "No difference but +131 kB a step: 1 equivalent in another form."


def test_every_difference_is_one_line_of_at_most_100_columns(tmp_path: Path) -> None:
    text = print_text(render_diff([SUM], [LONG, GATHER, wire("all-reduce", "f32[256,1024]")]), tmp_path)
    assert sum(line[:1] in "+~−" for line in text) == 2 + 3  # two names, three differences
    assert max(map(len, text)) <= 100


def test_scope_and_op_name_have_columns_and_a_path_that_is_cut_keeps_its_end(tmp_path: Path) -> None:
    deep = wire("all-gather", "bf16[64,1024]", result="bf16[256,1024]", scope="outer/middle/inner/layer.mlp.down")
    text = print_text(render_diff([SUM], [SUM, deep]), tmp_path)
    (heading,), (line,) = ([row for row in text if word in row] for word in ("op_name", "all-gather over"))
    scope, op_name, amount = (heading.index(word) for word in ("scope", "op_name", "count × payload"))
    assert line[scope:op_name].rstrip() == "layer.mlp.down"
    assert line[op_name:amount].rstrip() == "….down/dot_general"


def test_a_scope_that_is_only_the_neighbours_is_marked_and_the_mark_explained(tmp_path: Path) -> None:
    before = rows(SUM)
    nameless = replace(rows(GATHER)[0], inferred=("scope",))
    diff = diff_report(match(before, [*before, nameless]), names=("a", "b"), axes=AXES)
    (line,) = difference_lines(diff)
    assert (line.scope, line.op_name) == ("≈layer.mlp.down", "layer.mlp.down/dot_general")
    text = print_text(diff, tmp_path)
    assert "≈: not its own, but the nearest instruction's." in text


pages = {
    "programs": lambda: render_diff([SUM, GATHER], [LONG, HOP, HOP, BACK]),
    "runs": lambda: diff_runs(RUN, RUN),
}


@pytest.mark.parametrize("name", pages)
def test_a_page_opens_without_a_complaint_or_a_request_at_any_width(browser: Any, tmp_path: Path, name: str) -> None:
    place = tmp_path / "diff.html"
    place.write_text(page(pages[name]()), encoding="utf-8")
    browser.get_log("browser")
    browser.get_log("performance")
    for width in (360, 1400):
        open_page(browser, place, width=width)
        browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    events = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    first_page = {"chrome", "chrome-untrusted"}  # is the browser's own
    assert {url.partition(":")[0] for url in urls} - first_page <= {"file", "data"}
    assert browser.get_log("browser") == []


for mark in (*MARKS, pytest.mark.slow):
    test_a_page_opens_without_a_complaint_or_a_request_at_any_width = mark(
        test_a_page_opens_without_a_complaint_or_a_request_at_any_width
    )
