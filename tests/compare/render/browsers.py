"""Headless Chromium; tests that need it are skipped where there is none."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

BROWSERS = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
BROWSER = next((path for path in BROWSERS if path), None)
DRIVER = shutil.which("chromedriver")

MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver: apt-get install chromium-driver"),
]

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def start_browser(profile: Path) -> Any:
    """A driver whose browser keeps its things in `profile`, and tells what the console and the network say."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install -e '.[test]'")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return selenium.Chrome(options=options, service=Service(str(DRIVER)))


def resize(browser: Any, *, width: int) -> None:
    """Give the window this width."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )


def open_page(browser: Any, path: Path, *, width: int) -> None:
    """Open a file in a window of that width."""
    resize(browser, width=width)
    browser.get(path.as_uri())
    wait_for_page(browser, path)


def wait_for_page(browser: Any, path: Path) -> None:
    """Until this file and all that it loads are there.

    On a busy machine, Chromium's driver 150 says of one page in fifty that it is open before its style is.
    """
    from selenium.webdriver.support.wait import WebDriverWait

    there = f"return document.readyState == 'complete' && document.URL == {json.dumps(path.as_uri())}"
    WebDriverWait(browser, timeout=30, poll_frequency=0.02).until(lambda each: each.execute_script(there))
