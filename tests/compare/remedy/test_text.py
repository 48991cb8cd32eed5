"""Remedies in words, and as a page: every line from a search that is written by hand."""

import io
import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from compare.remedy.page import page, sections
from compare.remedy.print_remedies import print_remedies
from compare.remedy.search import Measurement
from compare.render.errors import ViewError
from compare.render.terminal import WIDTH
from tests.compare.remedy.test_measure import Cached, Table, Wrong, cached, run_search  # noqa: F401 (a fixture)
from tests.compare.render.from_json import page as report_page


def print_text(result):
    out = io.StringIO()
    print_remedies(result, out=Console(file=out, width=WIDTH, highlight=False, markup=False))
    return " ".join(out.getvalue().split())


def test_the_list_says_what_to_change_what_it_removes_and_what_remains():
    _, result = run_search(Table(), arms=("jax", "torchxla"))
    text = print_text(result)
    assert "TorchXLA, llama-3.1-8b on pp2tp4: 1 change, largest effect first, each compiled and counted" in text
    assert (
        "−80 B a step in prefill, −20 B in decode; modelled step −10 ns in prefill, −10 ns in decode, verified ("
        in text
    )
    assert "torch.stack([F.scaled_dot_product_attention(*one, …) for one in each], 1)" in text
    assert "equally good alternatives: attention-einsum (modelled step 60 ns in prefill, 60 ns in decode)" in text
    assert "prefill: induced 80 B → 0 B, inflated 10 B → 10 B, modelled step 60 ns → 50 ns" in text
    assert "(--microbatches 8): −5 B a step, which leaves 5 B" in text
    assert "not offered: it has no permutes by hand" in text
    assert "remains: 10 B in layer.mlp.down over tp (inflated, bubble): pipeline stages that are idle" in text
    assert "JAX, llama-3.1-8b on pp2tp4: no code change was found" in text
    assert "removed only by explicit collectives, so the SPMD form causes it" in text


def test_an_arm_that_could_not_be_measured_says_why():
    class Broken(Table):
        @staticmethod
        def measured(program, names):
            return Measurement(error="crashed: it <dies> at once")

    _, result = run_search(Broken())
    assert "no program could be measured" in print_text(result)
    assert "prefill: crashed: it <dies> at once" in print_text(result)
    assert "crashed: it &lt;dies&gt; at once" in page(result)


def test_the_page_holds_the_same_lines_and_every_program_that_was_compiled():
    _, result = run_search(Table())
    html = page(result)
    opened = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "link"):
                opened.append(tag)

        def handle_endtag(self, tag):
            assert opened.pop() == tag

    Checker().feed(html)
    assert not opened
    assert "<script" not in html
    for entry in result["arms"]["torchxla"]["phases"]["prefill"]["tried"]:
        assert " + ".join(entry["names"]) in html


def test_a_report_shows_what_a_search_found_and_leads_to_all_of_it(report, tmp_path):
    _, result = run_search(Table())
    (tmp_path / "remedies.json").write_text(json.dumps(result))
    html = report_page(report, sections=sections(tmp_path)).replace("\N{NO-BREAK SPACE}", " ")
    shown = html[html.index('<section id="remedies">') :]
    shown = shown[: shown.index("</section>")]
    assert "−80 B a step in prefill, −20 B in decode; modelled step −10 ns in prefill, −10 ns in decode, " in shown
    assert "torch.stack([F.scaled_dot_product_attention(*one, …) for one in each], 1)" in shown
    assert '<a href="remedies.html">' in shown
    assert '<a href="#remedies">' in html
    assert "remedies" not in report_page(report)


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_what_is_no_search_s_is_refused_in_one_line(text, tmp_path):
    (tmp_path / "remedies.json").write_text(text)
    with pytest.raises(ViewError, match=r"remedies\.json is not what compare\.remedy --into writes"):
        sections(tmp_path)


@pytest.mark.usefixtures("cached")
def test_bytes_and_time_stand_side_by_side_and_what_is_slower_is_not_recommended():
    _, result = run_search(Cached(), phases=("decode",))
    text = print_text(result)
    assert "2 changes, largest effect first" in text
    assert "−20 B a step in decode; modelled step −10 ns in decode, verified (attention-per-sequence)" in text
    assert "read the cache by cache-fast: no bytes in decode; modelled step −25 ns in decode, verified" in text
    assert "by modelled time: cache-fast (−25 ns), attention-per-sequence (−10 ns)" in text
    assert "decode, for time alone: with cache-fast the modelled step goes from 50 ns to 25 ns" in text
    assert "decode, not recommended: cache-slow removes no bytes, and costs 25 ns of the modelled step" in text
    html = page(result).replace("\N{NO-BREAK SPACE}", " ")
    assert "by modelled time: cache-fast (−25 ns), attention-per-sequence (−10 ns)" in html
    assert "not recommended: cache-slow" not in html.partition("<ol>")[2].partition("</ol>")[0]
    _, wrong = run_search(Wrong(), phases=("decode",))

    class Longer(Table):
        @staticmethod
        def measured(program, names):
            return replace(Table.measured(program, names), step_ns=90.0 if "microbatches-8" in names else 60.0)

    _, longer = run_search(Longer(), phases=("decode",))
    assert "(--microbatches 8): −5 B a step, but the modelled step is 30 ns longer; modelled step 90 ns" in print_text(
        longer
    )
    said = "decode, not recommended: attention-per-sequence removes 20 B, but costs 60 ns of the modelled step"
    assert said in print_text(wrong)


def test_a_search_of_an_earlier_version_is_still_shown():
    _, result = run_search(Table(), phases=("decode",))
    for phase in result["arms"]["torchxla"]["phases"].values():
        for key in ("faster", "slower", "fastest"):
            del phase[key]
        for entry in phase["remedies"]:
            del entry["saves_ns"]
    assert "−20 B a step in decode, verified (attention-per-sequence)" in print_text(result)
    assert "by modelled time" not in page(result)
