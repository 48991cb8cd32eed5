"""The gallery's pages and its terminal view: whole, linked, and readable in a real browser."""

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from compare.gallery.lesson_types.lesson import STANDINGS
from compare.gallery.lesson_types.lesson_result import LessonResult
from compare.gallery.lessons import LESSONS, TEN_FIRST, find_lesson
from compare.gallery.render import print_lessons as teach_text
from compare.gallery.render.lesson_figures import Tensor, draw_tensors, picture_inches
from compare.gallery.render.page import STYLE, _scale, render_pages
from compare.gallery.render.words import evidence, outcomes, reach, shorten_hlo
from compare.hlo.collective import Collective
from tests.compare.render.browsers import MARKS, open_page, resize, wait_for_page
from tests.compare.render.report.test_browser import COLOURS, contrast
from tests.compare.verdict.programs import collective
from tests.places import GALLERY

PAGES = sorted(GALLERY.glob("*.html"))
CUT_OFF = """
    document.querySelectorAll('details').forEach(fold => { fold.open = true; });
    return [...document.querySelectorAll('html, body *:not(svg *)')]
      .filter(element => element.clientWidth && element.scrollWidth > element.clientWidth + 1)
      .map(element => `${element.tagName} ${element.className}: ${element.scrollWidth} in ${element.clientWidth}`);
"""
"""What a reader would have to scroll sideways for, with every fold open."""
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"


def row(**changes: Any) -> Collective:
    """A sum of 1 MiB, of which each of four devices sends 2·3/4."""
    return replace(collective("tp4", "all-reduce", "tp", "?", 1_048_576), **{"text": "%a = all-reduce()"} | changes)


def make_result(*rows: Collective, program: str = "jax/shardy", status: str = "ok", error: str = "") -> LessonResult:
    (lesson,) = find_lesson("mlp")
    return LessonResult(
        lesson=lesson,
        program=program,
        status=status,
        error=error,
        source="def mlp(x, w1, w2): ...",
        rows=rows,
        takes=((None, None), (None, "tp"), ("tp", None)),
        gives=((None, None),),
        versions={"jax": "1"},
    )


class Links(HTMLParser):
    """What a page links to, and the places that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.styles: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a":
            self.links.append(attributes["href"] or "")
        if tag == "link" and attributes["rel"] == "stylesheet":
            self.styles.append(attributes["href"] or "")
        if attributes.get("id"):
            self.places.add(str(attributes["id"]))


def test_no_link_is_dead() -> None:
    known = {path.name: Links(path.read_text(encoding="utf-8")) for path in PAGES}
    assert len(known) == len(LESSONS) + 2  # the index and the rules
    assert all(page.styles == [STYLE] for page in known.values())
    assert (GALLERY / STYLE).exists()
    for name, page in known.items():
        for link in page.links:
            target, _, place = link.partition("#")
            assert (target or name) in known, (name, link)
            assert not place or place in known[target or name].places, (name, link)


def test_every_lesson_can_be_reached_from_the_index_and_from_the_one_before() -> None:
    index = Links((GALLERY / "index.html").read_text(encoding="utf-8")).links
    for before, after in zip(("index", *(lesson.name for lesson in LESSONS)), LESSONS, strict=False):
        assert f"{after.name}.html" in index
        assert f"{after.name}.html" in Links((GALLERY / f"{before}.html").read_text(encoding="utf-8")).links


def test_the_index_offers_ten_lessons_first_in_their_order_each_with_what_it_teaches() -> None:
    index = (GALLERY / "index.html").read_text(encoding="utf-8")
    section = index[index.index('<section id="first"') : index.index('<section id="reading"')]
    offered = [link.removesuffix(".html") for link in Links(section).links]
    assert len(offered) == 10
    assert offered == [lesson.name for lesson in LESSONS if lesson.name in TEN_FIRST] == list(TEN_FIRST)
    assert all(f"</a>: {gain}.</li>" in section for gain in TEN_FIRST.values())


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_page_has_all_that_a_lesson_needs(lesson: Any) -> None:
    text = (GALLERY / f"{lesson.name}.html").read_text(encoding="utf-8")
    assert "The rule." in text
    assert '<details class="question">' in text
    assert text.count("<svg") >= 3  # the mesh, before, after
    assert text.count(f"def {lesson.pattern}(") == (1 if lesson.absent else 2)
    for move in lesson.needs:
        assert move.formula in text
        assert f"{lesson.payload(move):,}" in text
    # Folded, until the reader asks.
    assert not re.search(r"<details[^>]*\bopen\b", text)


def test_a_tensor_is_cut_where_it_is_split_and_copied_where_it_is_not() -> None:
    def drawn(axes: tuple[str | None, ...], partial: str = "") -> str:
        return draw_tensors(
            [Tensor(name="x", dims=("T", "D"), sizes=(8, 8), axes=axes, partial=partial)], {"dp": 2, "tp": 2}
        )

    def cards(svg: str) -> int:
        return len(re.findall(r'<g id="patch_\d+">', svg)) - 1  # without the ground

    assert "x[T/dp, D/tp]" in drawn(("dp", "tp"))
    # Every device has a card, whether it is a part or a copy.
    assert cards(drawn(("dp", "tp"))) == cards(drawn(("dp", None))) == cards(drawn((None, None))) == 4
    assert "stroke-dasharray" in drawn((None, None), partial="tp")
    assert "stroke-dasharray" not in drawn((None, None))
    assert "D = 8 / 2" in drawn((None, "tp"))


def test_the_same_picture_has_the_same_bytes() -> None:
    tensor = Tensor(name="x", dims=("T", "D"), sizes=(8, 8), axes=("tp", None))
    assert draw_tensors([tensor], {"tp": 4}) == draw_tensors([tensor], {"tp": 4})


def test_programs_that_move_the_same_are_told_together() -> None:
    alike = [
        make_result(row()),
        make_result(row(), program="jax/gspmd"),
        make_result(row(executions=2), program="torchxla/gspmd"),
    ]
    first, second = outcomes(alike)
    assert first.titles == "JAX (Shardy and GSPMD)"
    assert (first.verdict, first.words) == ("needed", "just what this split needs")
    assert second.titles == "PyTorch/XLA (GSPMD)"


def test_more_bytes_than_needed_are_told_as_a_ratio_and_strange_ones_as_strange() -> None:
    (outcome,) = outcomes([make_result(row(payload_bytes=2_097_152, step_wire_bytes=3_145_728))])
    assert (outcome.verdict, outcome.words) == ("more", "2.00 × the bytes that are needed")
    assert outcome.why.startswith("This is not what the lesson was written for")


def test_a_program_that_failed_says_why_on_its_page() -> None:
    html = render_pages([make_result(status="crashed", error=f"died: {HOSTILE}")])["mlp.html"]
    assert "crashed: died: &lt;img src=x" in html
    assert "<img" not in html


def test_what_a_program_wrote_is_text_and_nothing_else() -> None:
    html = render_pages([make_result(row(text=HOSTILE, dtype=HOSTILE))])["mlp.html"]
    assert "<img" not in html


def test_a_collective_in_another_form_than_one_expects_says_so_in_words() -> None:
    rows = (row(form="fused-reduce-scatter"), row(form="start-done", kind="all-gather"), row(form="new-form"))
    html = render_pages([make_result(*rows)])["mlp.html"]
    assert "B of bf16, written as an all-reduce in a fusion that keeps a device&#39;s own part</li>" in html
    assert "B of bf16</li>" in html
    assert "B of bf16, new-form</li>" in html


def test_a_rule_says_how_far_it_reaches_and_by_which_compiler() -> None:
    (lesson,) = find_lesson("sequence-weights")
    compiler_lessons = [
        replace(make_result(row(), program=program), lesson=lesson, versions={"libtpu": "9.9"})
        for program in ("jax/shardy", "jax/gspmd")
    ]
    assert reach(lesson, compiler_lessons) == "libtpu 9.9, under both partitioners alike; another version may differ"
    other = [compiler_lessons[0], replace(compiler_lessons[1], rows=(row(kind="all-gather"),))]
    assert reach(lesson, other).startswith("libtpu 9.9, the two partitioners differ, see below;")
    assert reach(find_lesson("mlp")[0], compiler_lessons) == STANDINGS["law"]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_rule_box_says_what_it_is(lesson: Any) -> None:
    text = (GALLERY / f"{lesson.name}.html").read_text(encoding="utf-8")
    box = text[text.index('<div class="rule">') : text.index("<h2>The source")]
    assert f'<a href="index.html#standing"><b>{lesson.standing.capitalize()}</b></a>' in box
    assert ("The border." in box) == bool(lesson.border)
    assert ("libtpu 0." in box) == (lesson.standing == "this compiler")


def test_lines_that_are_alike_but_for_names_are_shown_once() -> None:
    first, second = row(text="%all-reduce.1 = f32[4] all-reduce(%x)"), row(text="%ar = f32[4] all-reduce(%y.7)")
    other = row(text="%ar = f32[8] all-reduce(%y.7)")
    lines = evidence(
        [make_result(first), make_result(second, program="jax/gspmd"), make_result(other, program="torchxla/gspmd")]
    )
    assert lines == [
        ("JAX (Shardy)", "JAX (GSPMD)", ["%all-reduce.1 = f32[4] all-reduce(%x)"]),
        ("PyTorch/XLA (GSPMD)", "", ["%ar = f32[8] all-reduce(%y.7)"]),
    ]


def test_what_every_page_would_repeat_stands_on_the_index_alone() -> None:
    for words in ("copies lie behind each other like cards", "These very lines", "source_target_pairs</code> are"):
        assert [path.name for path in PAGES if words in path.read_text(encoding="utf-8")] in ([], ["index.html"]), words


def test_needed_and_emitted_are_told_apart_where_a_learner_prepares() -> None:
    rules = " ".join((GALLERY / "rules.html").read_text(encoding="utf-8").split())
    index = " ".join((GALLERY / "index.html").read_text(encoding="utf-8").split())
    for needed, emitted in (
        ("all-reduce over tp", "All four programs: collective-permute over tp, all-reduce over tp"),  # last-token
        ("all-gather over tp", "All four programs: all-reduce over tp"),  # decide-sum-narrow
        ("reduce-scatter over tp", "All four programs: all-reduce over tp"),  # move-sum-few
    ):
        assert f"Needed: {needed}. Emitted: {emitted}." in rules
        assert emitted.replace(": ", ": emitted ", 1) in index
    assert "<code>python -m compare.teach --quiz</code> asks what is emitted." in index


def test_a_tag_says_that_the_two_partitioners_differ() -> None:
    text = (GALLERY / "rules.html").read_text(encoding="utf-8")
    tags = dict(re.findall(r'<dt><a href="([a-z-]+)\.html">.*?<span class="kind standing">(.*?)</span></dt>', text))
    for name in ("decide-wanted-whole", "sequence-windows", "decide-looks-ahead"):
        assert tags[name] == "this compiler, where Shardy and GSPMD differ"
    assert tags["decide-wanted-rows"] == "this compiler"
    assert tags["mlp"] == "law"


def test_how_to_tell_a_scatter_that_is_written_as_an_all_reduce_stands_wherever_one_is_shown() -> None:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        if "written as an all-reduce in a fusion" in text:
            assert "How to recognize a reduce-scatter" in text, path.name
    for name in ("move-sum-few", "move-sum-scatter", "index", "rules"):
        assert "How to recognize a reduce-scatter" in (GALLERY / f"{name}.html").read_text(encoding="utf-8"), name
    assert "How to recognize a reduce-scatter" not in (GALLERY / "mlp.html").read_text(encoding="utf-8")


def test_the_page_of_rules_has_all_of_them_and_every_case_of_a_matmul() -> None:
    text = (GALLERY / "rules.html").read_text(encoding="utf-8")
    assert {f"{lesson.name}.html" for lesson in LESSONS} <= set(Links(text).links)
    # By hand: the four cases with their payloads.
    for split, sent, payload in (
        ("x[T/a, D] · w[D, F] → y[T/a, F]", "nothing", "–"),
        ("x[T, D/a] · w[D/a, F] → y[T, F]", "all-reduce of partial sums of y", "<code>T·F·2</code>"),
        ("x[T, D/a] · w[D/a, F] → y[T/a, F]", "reduce-scatter of partial sums of y", "<code>T·F·2</code>"),
        ("x[T/a, D] · w[D, F/a] → y[T/a, F]", "all-gather of w", "<code>D·F·2</code>"),
        ("x[T/a, D] · w[D, F/a] → y[T, F/a]", "all-gather of x", "<code>T·D·2</code>"),
    ):
        assert f'<code>{split}</code></td><td class="words">{sent}</td><td class="words">{payload}</td>' in text, split


def test_a_lesson_that_is_named_is_a_link() -> None:
    html = render_pages([make_result(row())])["mlp.html"]
    assert 'href="sequence-unpinned.html"' not in html
    text = (GALLERY / "layers-fsdp-tp.html").read_text(encoding="utf-8")
    assert '<a href="layers-split.html">layers-split</a>' in text


def test_the_panels_of_a_lesson_stand_in_one_row_where_that_can_be() -> None:
    wide = Tensor(name="x", dims=("T", "D"), sizes=(512, 4096), axes=(None, None))
    assert picture_inches([wide], {"tp": 4}, scale=0.64) < picture_inches([wide], {"tp": 4})
    assert [_scale([("before", [wide] * count)], {"tp": 4}) for count in (1, 5, 20)] == [1.0, 0.76, 0.76]


def test_a_line_of_hlo_is_shown_without_what_only_a_compiler_reads() -> None:
    text = (
        "%all-reduce = bf16[512,1024]{1,0:T(8,128)(2,1)S(1)} all-reduce(%fusion), channel_id=1, "
        "replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add, "
        'metadata={op_name="jit(f)/dot" stack_frame_id=5}, backend_config={"a":{"b":1}}'
    )
    assert shorten_hlo(row(text=text)) == (
        "%all-reduce = bf16[512,1024] all-reduce(%fusion), replica_groups={{0,1,2,3}}, to_apply=%add"
    )


def test_the_terminal_tells_the_whole_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    monkeypatch.setattr(teach_text, "console", lambda: Console(file=written, width=100, highlight=False, markup=False))
    teach_text.print_lesson([make_result(row(dtype=HOSTILE))], before="a", after="b")
    text = written.getvalue()
    for words in (
        "x[T, D], w1[D, F/tp], w2[F/tp, D] → y[T, D]",
        "payload T·D·2 = 512·1,024·2 = 1,048,576 B",
        "on the wire 2·(4−1)/4 of it = 1,572,864 B a device",
        "just what this split needs",
        "The rule:",
        "A question:",
        "def mlp(x, w1, w2)",
        "before: a   next: b",
    ):
        assert words in text
    assert "\x1b" not in text
    assert "`" not in text


def ask(browser: Any, *, until: str) -> list[str]:
    """What it has asked for since its log was read; the log may come later than the page, on a busy machine."""

    def new() -> list[str]:
        events = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
        urls = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith("data:")]

    requested = new()
    for _ in range(200):
        if until in requested:
            break
        time.sleep(0.05)
        requested += new()
    return requested + new()


@pytest.mark.browser
@pytest.mark.slow
class TestInABrowser:
    """Headless Chromium; skipped where there is none."""

    pytestmark = MARKS

    def test_every_page_opens_without_a_complaint_or_a_request_and_nothing_is_cut_off(self, browser: Any) -> None:
        open_page(browser, PAGES[0], width=1200)  # what the browser itself opens with is over then
        cut = {}
        for page in PAGES:
            browser.get_log("browser")
            browser.get_log("performance")
            open_page(browser, page, width=1200)
            # The page and its style, both beside each other on disk.
            assert ask(browser, until=(GALLERY / STYLE).as_uri()) == [page.as_uri(), (GALLERY / STYLE).as_uri()]
            assert browser.execute_script("return getComputedStyle(document.body).maxWidth") == "1216px"
            for width in (1200, 390, 360):  # no rule for wide screens begins above 1200
                resize(browser, width=width)
                assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page.name
                cut[page.name, width] = browser.execute_script(CUT_OFF) if width > 360 else []
            assert browser.get_log("browser") == []
        assert {page: found for page, found in cut.items() if found} == {}

    def test_an_answer_unfolds_from_the_keyboard(self, browser: Any) -> None:
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys

        open_page(browser, GALLERY / "matmul-contracting.html", width=1200)
        question = browser.find_element(By.CSS_SELECTOR, "details.question")
        answer = question.find_element(By.TAG_NAME, "p")
        assert not answer.is_displayed()
        question.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        assert answer.is_displayed()

    def test_the_next_lesson_is_one_click_away(self, browser: Any) -> None:
        from selenium.webdriver.common.by import By

        open_page(browser, GALLERY / "index.html", width=1200)
        browser.find_element(By.CSS_SELECTOR, ".cards a").click()
        for lesson in LESSONS[:3]:
            wait_for_page(browser, GALLERY / f"{lesson.name}.html")
            browser.find_element(By.CSS_SELECTOR, "a[rel=next]").click()

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_words_can_be_read_in_either_scheme(self, browser: Any, scheme: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for name in ("index", "pipeline-roll", "cache-write-positions"):
            open_page(browser, GALLERY / f"{name}.html", width=1200)
            result = browser.execute_script(COLOURS)
            assert len(result) > 10
            for words, ink, paper in result:
                assert contrast(ink, paper) >= 4.5, (name, words, ink, paper)


def test_a_rule_of_one_partitioner_does_not_claim_the_other() -> None:
    (lesson,) = find_lesson("ragged-experts")
    result = replace(make_result(), lesson=lesson, versions={"libtpu": "1"})
    assert reach(lesson, [result]) == "libtpu 1, under Shardy alone; another version may differ"
