"""The strip in a real browser: it opens, zooms, moves, and says of what is pointed at what it is."""

from pathlib import Path
from typing import Any

import pytest

from tests.compare.render.browsers import MARKS, open_page
from tests.compare.render.report.test_browser import COLOURS, contrast
from tests.compare.render.time.test_page import make_page
from tests.compare.render.timelines import step_ns

pytestmark = [*MARKS, pytest.mark.slow]

US = 1000.0
WHOLE = step_ns(gathers=True)
"""Of the longest program that is shown first: TorchXLA's."""

TOP, COMPUTE, TALK, GAP = 18, 12, 24, 12
"""Pixels of a strip with four lanes or less: the axis, a lane's two rows, the room below."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strip") / "report.html"
    path.write_text(make_page("prefill"), encoding="utf-8")
    return path


@pytest.fixture
def strips(browser: Any, place: Path) -> Any:
    """The page, scrolled to the strip. A wheel that turns before the scroll event has come does not zoom."""
    open_page(browser, place, width=1400)
    browser.execute_async_script(
        "document.getElementById('strips').scrollIntoView();"
        "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
    )
    return browser


def _view(browser: Any) -> tuple[float, float]:
    result = browser.execute_script("return {...document.querySelector('.stage').dataset}")
    return float(result["from"]), float(result["to"])


def _canvas(browser: Any, program: int) -> Any:
    return browser.find_elements("css selector", ".stage canvas")[program]


def _point(browser: Any, program: int, lane: int, ns: float, *, talk: bool = True) -> list[str]:
    """Move the pointer to a time of a lane; returns the lines of what is then told."""
    from selenium.webdriver.common.action_chains import ActionChains

    canvas, (begin, end) = _canvas(browser, program), _view(browser)
    rows = browser.execute_script("return [size.compute, size.talk, size.lane]")
    across = (ns - begin) / (end - begin) * canvas.size["width"] - canvas.size["width"] / 2
    down = TOP + lane * rows[2] + (rows[0] + rows[1] / 2 if talk else rows[0] / 2) - canvas.size["height"] / 2
    ActionChains(browser).move_to_element_with_offset(canvas, round(across), round(down)).perform()
    _settle(browser)
    tip = browser.find_element("css selector", ".stage .tip")
    return tip.text.splitlines() if tip.is_displayed() else []


def _wheel(browser: Any, program: int, delta: int) -> None:
    """Turn the wheel over the left edge of a strip, where the pointer has just been moved to."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.support.ui import WebDriverWait

    canvas = _canvas(browser, program)
    left = -(canvas.size["width"] // 2) + 1
    ActionChains(browser).move_to_element_with_offset(canvas, left, 0).perform()
    browser.execute_script("turned = false; addEventListener('wheel', () => { turned = true; }, { once: true });")
    ActionChains(browser).scroll_from_origin(ScrollOrigin.from_element(canvas, left, 0), 0, delta).perform()
    WebDriverWait(browser, 30).until(lambda page: page.execute_script("return turned"))
    _settle(browser)


def _settle(browser: Any) -> None:
    """Wait until the page has drawn what it was told: events of a loaded machine come late."""
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def _press(browser: Any, *keys: str) -> None:
    browser.find_element("css selector", ".stage").send_keys(*keys)


def test_it_opens_on_the_whole_step_without_a_complaint(browser: Any, place: Path) -> None:
    browser.get_log("browser")
    open_page(browser, place, width=1400)
    assert browser.get_log("browser") == []
    assert _view(browser) == (0, WHOLE)
    assert [item.text for item in browser.find_elements("css selector", ".stage .who")] == [
        "JAX tpu 105 ms a step, modelled for v5e:2x4 (not measured)",
        "TorchXLA tpu 117 ms a step, modelled for v5e:2x4 (not measured)",
    ]
    assert browser.find_elements("css selector", "#strips noscript img") == []


def test_something_is_painted_in_the_colours_of_the_verdicts(strips: Any) -> None:
    _wheel(strips, 1, -2000)  # near enough for whole pixels of each
    strips.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    seen = strips.execute_script(
        "const canvas = document.querySelectorAll('.stage canvas')[1];"
        "const found = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();"
        "for (let at = 0; at < found.length; at += 4) seen.add(found.slice(at, at + 3).join()); return [...seen]"
    )
    assert {"61,122,184", "219,165,20", "191,64,85"} <= set(seen)


def test_the_wheel_zooms_where_the_pointer_is_and_back_out(strips: Any) -> None:
    _wheel(strips, 1, -1500)
    begin, end = _view(strips)
    assert (begin, end) == (pytest.approx(0, abs=0.01 * WHOLE), pytest.approx(WHOLE * 1.0015**-1500, rel=0.05))
    _wheel(strips, 1, 3000)
    assert _view(strips) == (0, WHOLE)


def test_a_page_that_scrolls_by_is_not_held_up_by_the_strip(strips: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    before = strips.execute_script("return scrollY")
    _wheel(strips, 1, 400)  # nothing is left to zoom out of
    WebDriverWait(strips, 5).until(lambda page: page.execute_script("return scrollY") > before)
    assert _view(strips) == (0, WHOLE)


def test_hovering_shows_the_right_collective(strips: Any) -> None:
    _wheel(strips, 1, -2600)
    # TorchXLA's first layer: q is gathered from 0 to 150 µs, after 400 µs the all-reduce of 300 µs begins.
    assert _point(strips, 1, 0, 75 * US)[:6] == [
        "all-gather over tp",
        "all-gather.11",
        "in layer.attention.core",
        "16.8 MB payload",
        "150 µs, starts at 0 s",
        "100 µs exposed, 50.0 µs hidden",
    ]
    point = _point(strips, 1, 1, 500 * US)
    assert point[:3] == ["all-reduce over tp", "all-reduce.2", "in layer.attention.out"]
    assert point[5:] == ["300 µs exposed, 0 s hidden", "80 % inherent, 20 % inflated", "stage 1, devices 4–7"]
    assert strips.find_element("css selector", ".tip").get_attribute("data-verdict") == "inherent"


def test_hovering_over_compute_and_over_nothing_says_so(strips: Any) -> None:
    _wheel(strips, 1, -2600)
    assert _point(strips, 1, 0, 300 * US, talk=False) == ["compute, 200 µs", "starts at 200 µs"]
    assert _point(strips, 1, 0, 300 * US) == []


def test_buttons_and_keys_zoom_and_move(strips: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    strips.find_element("css selector", "[data-do=in]").click()
    assert _view(strips) == (WHOLE / 4, 3 * WHOLE / 4)
    _press(strips, Keys.ARROW_RIGHT)
    assert _view(strips) == (pytest.approx(0.35 * WHOLE), pytest.approx(0.85 * WHOLE))
    _press(strips, "+", Keys.ARROW_LEFT)
    begin, end = _view(strips)
    assert end - begin == pytest.approx(WHOLE / 4, rel=1e-6)
    _press(strips, "-")
    _press(strips, "0")
    assert _view(strips) == (0, WHOLE)


def test_keys_go_from_collective_to_collective_and_say_each(strips: Any) -> None:
    element = strips.find_element("css selector", ".told")
    _press(strips, "n")
    assert element.text.startswith(
        "JAX tpu: all-reduce over tp; all-reduce.2; in layer.attention.out; 16.8 MB payload; 300 µs"
    )
    _press(strips, "n", "n")
    assert "all-reduce.2" in element.text
    _press(strips, "p")
    assert "all-reduce.3" in element.text


def test_dragging_moves_and_never_beyond_the_step(strips: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    strips.find_element("css selector", "[data-do=in]").click()
    canvas = _canvas(strips, 0)
    ActionChains(strips).move_to_element(canvas).click_and_hold().move_by_offset(-200, 0).release().perform()
    begin, _ = _view(strips)
    assert begin == pytest.approx(WHOLE / 4 + 200 / canvas.size["width"] * WHOLE / 2, rel=0.01)
    for _ in range(3):
        ActionChains(strips).move_to_element(canvas).click_and_hold().move_by_offset(-500, 0).release().perform()
    assert _view(strips) == (WHOLE / 2, WHOLE)


def test_the_phase_and_the_programs_can_be_chosen(strips: Any) -> None:
    from selenium.webdriver.support.ui import Select

    strips.find_element("css selector", "[data-phase=decode]").click()
    programs = Select(strips.find_element("css selector", "#strips select"))
    assert [item.text for item in programs.options] == [
        "modelled: the default programs",
        "modelled: with the controls",
        "measured on CPU devices",
    ]
    assert strips.find_element("css selector", ".who").text.startswith("JAX tpu 4.20 ms a step")
    programs.select_by_index(1)
    assert len(strips.find_elements("css selector", ".stage canvas")) == 4
    programs.select_by_index(2)
    text = [item.text for item in strips.find_elements("css selector", ".who")]
    assert text[0] == "JAX cpu 42.0 ms a step, measured on 8 virtual CPU devices (jax), not a TPU; embed 4096 → 256"
    assert len(text) == 2


def test_what_is_left_by_rounding_is_not_hidden_time(strips: Any) -> None:
    # 0.4 − 0.1 − 0.3 is 6e-17 in a float.
    talk = "{start: 0.1, end: 0.4, exposed: 0.3, of: 0, wait: null}"
    result = strips.execute_script(f"return lines({{program: view.programs[0], number: 0, talk: {talk}}})")
    assert result[-3] == "0.30 ns exposed, 0 s hidden"


def test_a_line_of_the_list_of_waits_is_shown_in_the_strip(strips: Any) -> None:
    rows = strips.find_elements("css selector", ".waiting tr")
    (row,) = [row for row in rows[: len(rows) // 2] if "layer.attention.core" in row.text]
    row.find_element("css selector", "button").click()
    begin, end = _view(strips)
    assert end - begin < WHOLE / 50
    text = strips.find_element("css selector", ".told").text
    assert text.startswith("TorchXLA tpu: all-gather over tp; all-gather.11; in layer.attention.core")


def test_without_scripts_the_pictures_stand_in(browser: Any, place: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_page(browser, place, width=1400)
        assert not browser.find_element("id", "strips").is_displayed()
        assert browser.find_element("css selector", "noscript img").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [360, 768])
def test_no_width_scrolls_sideways(browser: Any, place: Path, width: int) -> None:
    open_page(browser, place, width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_on_a_narrow_page_names_stand_close_above_their_lanes(browser: Any, place: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    open_page(browser, place, width=400)
    WebDriverWait(browser, 30).until(lambda page: page.find_elements("css selector", ".names"))
    names = "[...document.querySelectorAll('.names')]"
    high = browser.execute_script(f"return {names}.map(one => one.getBoundingClientRect().height)")
    assert len(high) == 2
    assert max(high) < 30  # pixels: one line


def test_on_paper_no_table_is_cut(browser: Any, place: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        open_page(browser, place, width=718)  # A4 between Chromium's margins
        browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
        cut = "[...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth + 1)"
        assert browser.execute_script("return document.querySelectorAll('#time .wide table').length") > 4
        assert browser.execute_script(f"return {cut}.map(one => one.getAttribute('aria-label'))") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 718
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_on_paper_a_closed_fold_is_its_summary_and_an_open_one_all_of_it(browser: Any, place: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        open_page(browser, place, width=718)
        summaries = browser.execute_script(
            "return [...document.querySelectorAll('details > summary')]"
            ".filter(one => !one.closest('details').parentElement.closest('details:not([open])'))"
            ".map(one => one.checkVisibility())"
        )
        assert set(summaries) == {True}
        folded = "[...document.querySelectorAll('details:not([open]) > :not(summary)')]"
        hidden = browser.execute_script(f"return {folded}.map(one => one.checkVisibility())")
        assert len(hidden) > 10
        assert set(hidden) == {False}
        first = "document.querySelector('details > :not(summary)')"
        assert browser.execute_script(f"{first}.parentElement.open = true; return {first}.checkVisibility()")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_either_scheme(browser: Any, place: Path, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    open_page(browser, place, width=1400)
    browser.execute_script("document.querySelectorAll('#time details').forEach(one => { one.open = true })")
    result = [
        item for item in browser.execute_script(COLOURS.replace("'h1, p,", "'#time p, #time button, #time span, h1,"))
    ]
    assert len(result) > 100
    for words, ink, paper in result:
        assert contrast(ink, paper) >= 4.5, (words, ink, paper)


def test_a_wait_for_a_local_copy_is_told_apart_from_compute(browser: Any, place: Path, tmp_path: Path) -> None:
    """JAX's program, its first 200 µs a wait for a copy, by the page's data."""
    import json
    import re

    text = place.read_text(encoding="utf-8")
    found = re.search(r'(<script type="application/json" id="strip-data">)(.*?)(</script>)', text, re.DOTALL)
    assert found
    data = json.loads(found[2])
    strip = next(iter(data.values()))[0]
    lane = strip["lanes"][0]
    first = round(200 * US / strip["unit_ns"])
    lane["copies"] = [0, first]
    lane["compute"] = [first, lane["compute"][1] - first, lane["compute"][2] + 0, *lane["compute"][3:]]
    changed = tmp_path / "report.html"
    changed.write_text(text.replace(found[2], json.dumps(data).replace("<", "\\u003c")), encoding="utf-8")
    open_page(browser, changed, width=1400)
    browser.execute_script("document.getElementById('strips').scrollIntoView()")
    _settle(browser)
    _wheel(browser, 0, -2000)
    assert _point(browser, 0, 0, 100 * US, talk=False)[0] == "waits for a local copy, 200 µs"
    assert _point(browser, 0, 0, 225 * US, talk=False)[0].startswith("compute, 50")
