"""The page in a real browser: headless Chromium, skipped where there is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compare.render.browsers import MARKS, open_page
from tests.compare.render.from_json import page, pictures
from tests.compare.render.report.test_page import HOSTILE
from tests.compare.render.reports import make_mesh, make_report

pytestmark = MARKS


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with both phases, all figures, and a program that means harm."""
    report = make_report(phases=("prefill", "decode"))
    for entry in report["phases"]["decode"]["differences"]:
        entry |= {"scope": HOSTILE, "source_line": HOSTILE}
    for cell in report["phases"]["decode"]["arms"].values():
        for row in cell["collectives"]:
            row |= {"scope": HOSTILE, "hlo": HOSTILE * 50}
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(report, pictures=pictures(report)), encoding="utf-8")
    return path


def test_it_opens_without_a_complaint_or_a_request(browser: Any, place: Path) -> None:
    browser.get_log("browser")
    browser.get_log("performance")
    open_page(browser, place, width=1400)
    events = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert {url.partition(":")[0] for url in urls} <= {"file", "data"}
    assert [url for url in urls if url.startswith("file")] == [place.as_uri()]
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [360, 400, 768, 1400])
def test_no_width_scrolls_sideways(browser: Any, place: Path, width: int) -> None:
    open_page(browser, place, width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_narrow_page_shows_the_induced_column(browser: Any, place: Path) -> None:
    open_page(browser, place, width=400)
    cells = "document.querySelectorAll('.headline td:nth-of-type(3)')"
    right = browser.execute_script(f"return [...{cells}].map(cell => cell.getBoundingClientRect().right)")
    assert len(right) == 8
    assert max(right) <= 400


def test_a_difference_opens_from_the_keyboard(browser: Any, place: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_page(browser, place, width=1400)
    finding = browser.find_element(By.CSS_SELECTOR, "#why-prefill details.finding")
    evidence = finding.find_element(By.CSS_SELECTOR, "pre")
    assert not evidence.is_displayed()
    finding.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert evidence.is_displayed()
    assert "all-gather.11" in evidence.text


def test_the_axis_switch_shows_one_axis_at_a_time(browser: Any, place: Path) -> None:
    from selenium.webdriver.common.by import By

    open_page(browser, place, width=1400)

    def shown() -> list[str]:
        figures = browser.find_elements(By.CSS_SELECTOR, ".torus figure")
        return [
            figure.find_element(By.CSS_SELECTOR, "figcaption b").text for figure in figures if figure.is_displayed()
        ]

    assert shown() == ["tp"]
    browser.find_element(By.CSS_SELECTOR, "label[for=axis-1]").click()
    assert shown() == ["pp"]


def test_a_hostile_program_is_text_and_nothing_else(browser: Any, place: Path) -> None:
    from selenium.webdriver.common.by import By

    open_page(browser, place, width=1400)
    assert browser.find_elements(By.TAG_NAME, "script") == []
    assert browser.find_elements(By.CSS_SELECTOR, "img[src=x]") == []
    assert HOSTILE in browser.find_element(By.CSS_SELECTOR, "#why-decode .finding code").text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_either_scheme(browser: Any, place: Path, scheme: str) -> None:
    """WCAG AA: at least 4.5 to 1 for text of this size, against what is painted behind it."""
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    open_page(browser, place, width=1400)
    result = browser.execute_script(COLOURS)
    assert len(result) > 10
    for words, ink, paper in result:
        assert contrast(ink, paper) >= 4.5, (words, ink, paper)


@pytest.mark.slow
def test_256_devices_are_drawn(browser: Any, tmp_path: Path) -> None:
    report = make_report()
    report["mesh"] = make_mesh("dp16tp16")
    path = tmp_path / "report.html"
    path.write_text(page(report), encoding="utf-8")
    open_page(browser, path, width=400)
    assert browser.execute_script("return document.querySelectorAll('.torus figure.axis-2 rect').length") == 256
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400


COLOURS = """
const behind = one => { while (one) { const c = getComputedStyle(one).backgroundColor;
  if (c !== 'rgba(0, 0, 0, 0)') return c; one = one.parentElement } return 'rgb(255, 255, 255)' };
return [...document.querySelectorAll('h1, p, td, th, dt, dd, summary, .why, .tag, .how, .cause, a, label, .group')]
  .filter(one => one.textContent.trim() && one.getClientRects().length)
  .map(one => [one.textContent.slice(0, 40), getComputedStyle(one).color, behind(one)])
"""


def _rgb(colour: str) -> list[float]:
    return [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]


def contrast(colour: str, other: str) -> float:
    """Of two CSS colours, as WCAG has it."""
    light, dark = sorted((_luminance(_rgb(colour)), _luminance(_rgb(other))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(rgb: list[float]) -> float:
    parts = [part / 255 for part in rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
